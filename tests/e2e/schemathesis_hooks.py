"""What schemathesis_test.py changes of the requests that schemathesis makes up."""
import schemathesis


def harmless(body):
    """The same with no command but `true`: a job that is taken runs on this machine."""
    if isinstance(body, list):
        return [harmless(one) for one in body]
    if not isinstance(body, dict):
        return body
    return {key: "true" if key == "command" and isinstance(one, (str, list)) else harmless(one) for key, one in body.items()}


def without_null_queues(body):
    """The same with 0 where null stands for a queue. The document does not offer null there, but it is taken, because a
    bare name in YAML is null; 0 is as wrong by the document, and refused."""
    if not isinstance(body, dict) or not isinstance(body.get("queues"), dict):
        return body
    return {**body, "queues": {name: 0 if one is None else without_null_queues(one) for name, one in body["queues"].items()}}


def may_wait_for_ever(case):
    """A followed stream has a first event at once if it begins where the log does, and nothing chooses among its events."""
    return str(case.query.get("follow")).lower() == "true" and (
        case.query.keys() - {"follow", "limit"} or any(name.lower() == "last-event-id" for name in case.headers or {}))


@schemathesis.hook
def before_call(context, case, kwargs):
    case.body = without_null_queues(harmless(case.body))
    if isinstance(case.query, dict):
        # A cursor is what a list gave out before: no other text is one, and no schema can say so.
        case.query.pop("cursor", None)
        if may_wait_for_ever(case):
            case.query.pop("follow")
