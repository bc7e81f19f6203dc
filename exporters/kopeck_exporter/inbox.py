"""Where messages go: those of ranks to the worker, those of samplers to its devices."""

from kopeck_exporter.devices import Devices
from kopeck_exporter.fields import json_object
from kopeck_exporter.listener import Receive
from kopeck_exporter.report import read_report
from kopeck_exporter.sampler_report import KIND, read_sampler_report
from kopeck_exporter.worker import Worker


def inbox(worker: Worker, devices: Devices) -> Receive:
    """What a listener hands messages to."""

    def receive(data: bytes, connection: int, now_seconds: float) -> None:
        message = json_object(data)
        if message.get("kind") == KIND:
            devices.receive(read_sampler_report(message), connection, now_seconds)
        else:
            worker.receive(read_report(message), connection, now_seconds)

    return receive
