from processor.app import create_app
from processor.settings import Settings


def test_faust_opens_no_client_of_its_own():
    """Symptom: no worker started behind a login. Faust's producer connected without one."""
    app = create_app(Settings(app_id="a"))
    assert list(app.boot_strategy.kafka_producer()) == []
