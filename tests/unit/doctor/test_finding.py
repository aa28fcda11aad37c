from processor.doctor.finding import Finding, Level, gravest_first, or_ok


def test_gravest_come_first_and_keep_their_order():
    given = [Finding(level, str(number), "") for number, level in enumerate([*Level][::-1] * 2)]
    found = gravest_first(given)
    assert [it.level for it in found] == [level for level in Level for _ in range(2)]
    assert [it.where for it in found[:2]] == ["3", "7"]


def test_all_is_well_where_nothing_was_found():
    assert or_ok("a", "well", []) == [Finding(Level.OK, "a", "well")]
    found = [Finding(Level.NOTE, "a", "b")]
    assert or_ok("a", "well", found) == found
