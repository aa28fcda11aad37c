import json

from tests.unit.proof.verifying import CHUNKS, LOG, edited, verify

SPOILED = edited(1, b'"zzz', b'"zzy')


def test_report_comes_back_from_its_document():
    for report in (verify(), verify(chunks=SPOILED[1:])):
        document = json.loads(json.dumps(report.as_json()))
        assert type(report).from_json(document).as_json() == report.as_json()


def test_reports_of_partitions_add_up():
    one, other = verify(chunks=SPOILED), verify(LOG[:5], CHUNKS[:2])
    other.warnings.append("same")
    one.warnings.append("same")
    total = verify([], [])
    for report in (other, one):
        total.add(report)
    assert total.record_count == one.record_count + other.record_count
    assert total.faults == one.faults
    assert total.first == one.first
    assert total.warnings == ["same"]
    assert total.unaccounted_count == 0
    later = verify(chunks=edited(3, b"www", b"wwv"))
    assert later.first.keys() == one.first.keys()
    assert later.first != one.first
    total.add(later)
    assert total.first == one.first
    assert total.faults == one.faults + later.faults
