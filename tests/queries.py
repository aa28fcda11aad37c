"""The queries under deploy/, and whether a worker's ``/metrics`` has what they ask for."""

import json
from pathlib import Path

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families

DEPLOY = Path(__file__).parents[1] / "deploy"
#: What Prometheus adds itself.
ADDED = {"job", "instance"}
ADDED_SERIES = {"up": ADDED}
#: What Grafana puts in.
VARIABLES = {"$__rate_interval": "1m", "$job": "processor"}


def queries():
    """Yield each query behind where it is from."""
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield f"annotation {annotation['name']}", annotation["expr"]
    for rule in alerts():
        yield f"alert {rule['alert']}", rule["expr"]


def alerts():
    """Return the alert rules."""
    text = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def asked(query):
    """Return the labels that ``query`` asks for, by metric; each aggregation's of all within.

    Raises ValueError if it is no PromQL.
    """
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    found = {}

    def visit(node, labels):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            labels = labels | set(node.modifier.labels)
        if isinstance(node, promql_parser.VectorSelector):
            used = {it.name for it in node.matchers.matchers if it.name != "__name__"}
            found.setdefault(node.name, set()).update(used | labels)
        for inner in _inner(node):
            visit(inner, labels)

    visit(promql_parser.parse(query), set())
    return found


def _inner(node):
    if isinstance(node, promql_parser.Call):
        return list(node.args)
    if isinstance(node, promql_parser.MatrixSelector):
        return [node.vector_selector]
    inner = [getattr(node, name, None) for name in ("expr", "lhs", "rhs", "param")]
    return [it for it in inner if isinstance(it, promql_parser.Expr)]


def offered(metrics):
    """Return the labels of every series in a worker's ``/metrics``, by name."""
    found = {}
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def unanswered(metrics):
    """Return the queries that these ``/metrics`` have nothing for, and what is missing."""
    there = {name: labels | ADDED for name, labels in offered(metrics).items()} | ADDED_SERIES
    return [
        (where, name, sorted(labels - there.get(name, set())))
        for where, query in queries()
        for name, labels in asked(query).items()
        if name not in there or labels - there[name]
    ]
