"""`make demo`: a real Kubernetes on this machine, a real training, its dollars per sample."""

import json
import re
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.asking import queried
from tests.cluster import ClusterError, ExistingCluster, LocalCluster, existing_cluster
from tests.cluster.processes import Process, start
from tests.cluster.prometheus import start_prometheus
from tests.cluster.record import remove
from tests.demo_setting import MANIFEST, NAMESPACE, STATE, Setting, of_our_own, on
from tests.waiting import eventually

JOB = "byte-llama"
_DEADLINE_SECONDS = 900
_POLL_SECONDS = 1.0
_SCRAPE_SECONDS = 2

console = Console(stderr=True, highlight=False)


def main() -> int:
    if STATE.exists():
        console.print("Ending the cluster of an earlier demo")
        remove(STATE.resolve())
    existing = existing_cluster()
    setting = on(existing) if existing else of_our_own()
    operator, port = start_operator(setting)
    prometheus = start_prometheus(STATE.resolve(), [f"127.0.0.1:{port}"], _SCRAPE_SECONDS)
    cluster = setting.cluster
    cluster.kubectl("apply", f"--namespace={NAMESPACE}", "--filename=-", stdin=setting.manifest)
    console.print(f"kubectl apply -f {MANIFEST}")
    status = follow(cluster, operator)
    show(setting, prometheus, status)
    return 0 if status.get("phase") == "Complete" else 1


def start_operator(setting: Setting) -> tuple[Process, int]:
    """`kopeck operator` beside the cluster; its process and the port of its metrics."""
    operator = start(
        STATE.resolve(),
        "operator",
        [sys.executable, "-m", "kopeck", "operator", "--config", setting.operator_settings],
        env={"KUBECONFIG": str(setting.cluster.kubeconfig)},
    )

    def port() -> int:
        log = Path(operator.log).read_text()
        if operator.has_ended():
            raise ClusterError(f"the operator ended:\n{operator.log_tail()}")
        found = re.search(r"/healthz on port (\d+)", log)
        assert found, log
        assert "in sync" in log, log
        return int(found[1])

    return operator, eventually(port, seconds=60)


def follow(cluster: LocalCluster | ExistingCluster, operator: Process) -> dict[str, Any]:
    """Show the job's progress until it ends; its last status."""
    deadline = monotonic() + _DEADLINE_SECONDS
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Pending", total=None)
        while monotonic() < deadline:
            job = json.loads(cluster.kubectl("get", "tj", JOB, "-n", NAMESPACE, "-o", "json"))
            status: dict[str, Any] = job.get("status", {})
            progress.update(task, **told(job))
            if status.get("phase") in ("Complete", "Failed") and is_settled(status):
                return status
            if operator.has_ended():
                raise ClusterError(f"the operator ended:\n{operator.log_tail()}")
            sleep(_POLL_SECONDS)
    raise ClusterError(f"the job did not end within {_DEADLINE_SECONDS} s; see kubectl describe")


def told(job: dict[str, Any]) -> dict[str, Any]:
    """The progress bar's fields."""
    status = job.get("status", {})
    training, cost = status.get("training", {}), status.get("cost", {})
    words = [status.get("phase", "Pending")]
    if "step" in training:
        words.append(f"step {training['step']}")
    if "loss" in training:
        words.append(f"loss {training['loss']:.3f}")
    if "marginal" in cost.get("dollarsPerSample", {}):
        words.append(f"${float(cost['dollarsPerSample']['marginal']) * 1000:.3g} per 1K samples")
    if len(words) == 1 and status.get("phase") == "Starting":
        running = next(each for each in status["conditions"] if each["type"] == "Running")
        words.append(running["message"])
    total = job["spec"]["training"]["steps"]
    return {"description": "  ".join(words), "total": total, "completed": training.get("step", 0)}


def is_settled(status: dict[str, Any]) -> bool:
    """Whether nothing is charged any more."""
    return "hourlyRate" not in status.get("cost", {})


def show(setting: Setting, prometheus: str, status: dict[str, Any]) -> None:
    """The table, Prometheus' answer, and how to look further."""
    print("$ kubectl get tj")
    print(setting.cluster.kubectl("get", "tj", JOB, f"--namespace={NAMESPACE}"))
    print(what_is_missing(status) or answer(prometheus))
    print(
        f"\nLook further, from this folder:\n"
        f"  alias k='{setting.kubectl} -n {NAMESPACE}'\n"
        f"  k describe tj {JOB}\n"
        f"  k get pods,events\n"
        f"  k logs -l kopeck.dev/job={JOB} --tail=-1\n"
        f"  {prometheus}/graph?g0.expr=kopeck_samples_per_second&g0.range_input=15m&g0.tab=0\n"
        f"  {STATE}/logs holds the logs of the operator and of every component\n"
        f"End it with: make down{setting.stays}"
    )


def what_is_missing(status: dict[str, Any]) -> str | None:
    """Why there are no dollars per sample; None where there are."""
    conditions = {each["type"]: each for each in status["conditions"]}
    if status.get("phase") != "Complete":
        return f"{JOB} failed: {conditions['Failed']['message']}"
    priced = conditions["PriceKnown"]
    return None if priced["status"] == "True" else f"No dollars: {priced['message']}"


def answer(prometheus: str) -> str:
    """What Prometheus knows of the job's dollars per sample."""
    query = f'kopeck_dollars_per_sample{{training_job="{JOB}",basis="all_in"}}'

    def answered() -> str:
        found = queried(prometheus, query)
        assert found, query
        return str(found[0]["value"][1])

    return f"Prometheus: {query}\n  {eventually(answered)}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ClusterError as error:
        console.print(f"demo: {error}", style="red")
        sys.exit(1)
