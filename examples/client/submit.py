#!/usr/bin/env python3
"""Submits a job through a client that was generated, waits until it is over, and prints what it wrote.

    pip install openapi-python-client
    curl -s http://127.0.0.1:6380/openapi.json > openapi.json        # needs no token
    openapi-python-client generate --path openapi.json --meta none --output-path berth_client
    BERTH_SERVER=http://127.0.0.1:6380 BERTH_TOKEN=$(cat /var/lib/berth/token) python3 submit.py research/nlp echo hello
"""
import os
import sys
import time
import uuid

from berth_client import AuthenticatedClient
from berth_client.api.jobs import get_job, get_job_log, submit_job
from berth_client.models import JobDocument, Problem


def good(answer):
    """The answer, unless it is a refusal, which says what would be right."""
    if isinstance(answer, Problem):
        raise SystemExit(f"{answer.status} {answer.code}: {answer.detail}")
    return answer


def main():
    queue, *command = sys.argv[1:]
    client = AuthenticatedClient(os.environ["BERTH_SERVER"], os.environ["BERTH_TOKEN"])
    job = JobDocument(queue=queue, command=command, cpus=0.1)
    key = str(uuid.uuid4())  # the same document with the same key, sent again, stays one job
    submitted = good(submit_job.sync(client=client, body=job, idempotency_key=key))
    print(f"job {submitted.id}", file=sys.stderr)
    while good(seen := get_job.sync(submitted.id, client=client)).phase != "finished":
        time.sleep(0.5)
    sys.stdout.buffer.write(get_job_log.sync_detailed(submitted.id, client=client).content)
    raise SystemExit(0 if seen.outcome == "succeeded" else f"the job ended: {seen.outcome}")


if __name__ == "__main__":
    main()
