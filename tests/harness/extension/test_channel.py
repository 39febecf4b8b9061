from __future__ import annotations

import os
import socket

import pytest
from warpwright_harness.extension.channel import Channel, ChannelError


def pair() -> tuple[Channel, Channel, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(ours), Channel(theirs), theirs


def test_messages_and_descriptors_pass() -> None:
    judge, side, _ = pair()
    read, write = os.pipe()
    judge.send({"ask": "memory"}, write)
    assert side.receive(5) == {"ask": "memory"}
    passed = side.descriptor()
    assert passed is not None
    os.write(passed, b"x")
    assert os.read(read, 1) == b"x"
    for descriptor in (read, write, passed):
        os.close(descriptor)
    side.send({"number": "1"})
    side.send({"number": "2"})
    assert [judge.receive(5)["number"] for _ in range(2)] == ["1", "2"]


def test_silence_ends_at_the_deadline() -> None:
    judge, _side, _ = pair()
    with pytest.raises(ChannelError) as error:
        judge.receive(0.05)
    assert error.value.timed_out


@pytest.mark.parametrize("written", [b"PASS\n", b"[1, 2]\n", b"\xff\xfe\n"])
def test_what_is_no_message_is_told(written: bytes) -> None:
    judge, _side, raw = pair()
    raw.sendall(written)
    with pytest.raises(ChannelError) as error:
        judge.receive(5)
    assert error.value.forged


def test_the_other_end_goes_away() -> None:
    judge, side, _ = pair()
    side.close()
    with pytest.raises(ChannelError, match="its process ended"):
        judge.receive(5)
