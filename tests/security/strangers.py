"""A client that is no part of a cluster, at the ports of its tasks.

    python -m tests.security.strangers KIND ADDRESS...

does what `KINDS` has under that name, to each address, prints a line for each and ends with 0.
"""

import contextlib
import os
import random
import socket
import sys
import time

import grpc
import tensorflow.compat.v1 as tf

# More than the 512 connections that wait in the kernel for TensorFlow's server to take them.
FLOOD = 600
_TIMEOUT_SECS = 5.0
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
BYTES = (
    b"\0" * 1000,
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(256)),  # TLS
    _HTTP2[:10],
    _HTTP2,
    _HTTP2 + b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 1000,  # a frame said to have 16 MiB
    _HTTP2 + _SETTINGS + b"\0\0\5\x09\xff\0\0\0\1abcde",  # a continuation of nothing
    *(_HTTP2 + _SETTINGS + random.Random(seed).randbytes(2000) for seed in range(20)),
    *(random.Random(seed).randbytes(500) for seed in range(20)),
)
_MASTER = ("CreateSession", "ExtendSession", "RunStep", "CloseSession", "ListDevices", "Reset")
_WORKER = (
    *("GetStatus", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph"),
    *("DeregisterGraph", "RunGraph", "CleanupGraph", "CleanupAll", "RecvTensor", "RecvBuf"),
    *("CompleteGroup", "CompleteInstance", "GetStepSequence", "Logging", "Tracing"),
)
METHODS = (
    *(f"/tensorflow.MasterService/{name}" for name in _MASTER),
    *(f"/tensorflow.WorkerService/{name}" for name in _WORKER),
    "/tensorflow.EagerService/CreateContext",
    "/tensorflow.CoordinationService/RegisterTask",
    "/nobody.KnowsIt/Call",
)


def _connected(address):
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), _TIMEOUT_SECS)


def send_garbage(address):
    """Bytes that are no request: the server hangs up, or waits for more."""
    for content in BYTES:
        with _connected(address) as client, contextlib.suppress(OSError):
            client.sendall(content)
            client.settimeout(0.05)
            client.recv(1000)
    return f"{len(BYTES)} times garbage"


def call_with_garbage(address):
    """Each method of TensorFlow's services, with a message that is none: all are refused."""
    codes = set()
    with grpc.insecure_channel(address) as channel:
        for method in METHODS:
            call = channel.unary_unary(method)  # bytes as they are
            try:
                call(b"\xff" * 100, timeout=_TIMEOUT_SECS)
            except grpc.RpcError as error:
                codes.add(error.code().name)
            else:
                codes.add("OK")
    return f"{len(METHODS)} methods: {', '.join(sorted(codes))}"


def flood(address):
    """Many connections at once, half of which say that they speak HTTP/2."""
    with contextlib.ExitStack() as stack:
        taken = 0
        for number in range(FLOOD):
            with contextlib.suppress(OSError):
                client = stack.enter_context(_connected(address))
                client.sendall(_HTTP2 if number % 2 else b"")
                taken += 1
        time.sleep(1.0)
    return f"{taken} of {FLOOD} connections"


def _run_on(address, device):
    """Runs an op on a device of a cluster, in a session at one of its servers."""
    config = tf.ConfigProto(operation_timeout_in_ms=round(1000 * _TIMEOUT_SECS))
    with tf.Graph().as_default(), tf.device(device):
        value = tf.constant(1) + 1
        with tf.Session(f"grpc://{address}", config=config) as session:
            return session.run(value)


def ask_for_others(address):
    """Ops for a job that there is not, and for a task that the job has not: both are refused."""
    found = []
    for device in ("/job:stranger/task:0", "/job:worker/task:77"):
        try:
            found.append(str(_run_on(address, device)))
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return f"unknown job, wrong task: {', '.join(found)}"


def look(address):
    """A session that reads: TensorFlow lets it."""
    return f"a session of a stranger has computed {_run_on(address, '')}"


KINDS = {
    "garbage": send_garbage,
    "calls": call_with_garbage,
    "flood": flood,
    "others": ask_for_others,
    "look": look,
}


def main(kind, addresses):
    """Does it to each."""
    for address in addresses:
        print(f"{address}: {KINDS[kind](address)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's channels to servers may be waiting still
