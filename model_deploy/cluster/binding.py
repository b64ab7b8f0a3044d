"""`restrict_to`: keeps a server of TensorFlow to the address that it was given."""

import contextlib
import ctypes
import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator, Sequence

from model_deploy.cluster.network import IPAddress, IPNetwork

# Linux: `SO_ATTACH_FILTER` of <asm-generic/socket.h>, which Python's socket module leaves out.
_SO_ATTACH_FILTER = 26
# Classic BPF, <linux/filter.h>: opcodes, and the offset at which the IP header starts.
_LOAD_WORD, _LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x30, 0x54, 0x15, 0x06
_IP_HEADER = 0xFFF00000
_DESTINATION = {4: _IP_HEADER + 16, 6: _IP_HEADER + 24}

_Program = list[tuple[int, int, int, int]]


def restrict_to(port: int, networks: Sequence[IPNetwork]) -> None:
    """Lets this process's server on `port` be reached at addresses of `networks` only.

    TensorFlow's server always listens on all addresses of the machine, whichever it was
    given. So the kernel is told to drop packets that come to its socket for other addresses, and
    connections that were made before are ended.

    Args:
      port: where this process listens.
      networks: the addresses at which the server may be reached; a single one is a network, too.

    Raises:
      OSError: if the kernel cannot do it (it is not Linux), or nothing listens there.
    """
    listening = 0
    with contextlib.ExitStack() as stack:
        for each in _own_sockets():
            stack.enter_context(each)
            name = each.getsockname()
            if each.type != socket.SOCK_STREAM or name[1] != port:
                continue
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                _attach_filter(each, _filter(networks))
                listening += 1
    if not listening:
        raise OSError(errno.ENOTCONN, f"no socket of this process listens on port {port}")
    _end_connections(port, networks)


def _end_connections(port: int, networks: Sequence[IPNetwork]) -> None:
    for each in _own_sockets():
        with each, contextlib.suppress(OSError):
            name = each.getsockname()
            each.getpeername()  # raises where there is no connection
            if name[1] == port and not any(_plain(name[0]) in each for each in networks):
                each.shutdown(socket.SHUT_RDWR)


def _plain(text: str) -> IPAddress:
    """The address of a connection; IPv4 ones of an IPv6 socket are `::ffff:a.b.c.d`."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _own_sockets() -> Iterator[socket.socket]:
    """Copies of the internet sockets that this process has open."""
    for name in os.listdir("/proc/self/fd"):
        try:
            copy = os.dup(int(name))
        except OSError:
            continue  # the listing's own
        try:
            found = socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
            continue  # not a socket
        if found.family in (socket.AF_INET, socket.AF_INET6):
            yield found
        else:
            found.close()


def _filter(networks: Sequence[IPNetwork]) -> _Program:
    """A BPF program that passes packets for addresses of `networks` and drops all others.

    An instruction is (opcode, instructions to skip if equal, to skip if not, operand).
    """
    accept = (_RETURN, 0, 0, 0xFFFFFFFF)
    drop = (_RETURN, 0, 0, 0)
    program: _Program = []
    for network in networks:
        words, masks = _words(network.network_address), _words(network.netmask)
        block = [
            (_LOAD_BYTE, 0, 0, _IP_HEADER),
            (_AND, 0, 0, 0xF0),
            (_JUMP_IF_EQUAL, 0, 3 * len(words) + 1, network.version << 4),
        ]
        for i, (word, mask) in enumerate(zip(words, masks, strict=True)):
            to_next = 3 * (len(words) - i) - 2
            block.append((_LOAD_WORD, 0, 0, _DESTINATION[network.version] + 4 * i))
            block.append((_AND, 0, 0, mask))
            block.append((_JUMP_IF_EQUAL, 0, to_next, word))
        program += [*block, accept]
    return [*program, drop]


def _words(address: IPAddress) -> tuple[int, ...]:
    """The address in words of 32 bits."""
    return struct.unpack(f"!{len(address.packed) // 4}I", address.packed)


def _attach_filter(target: socket.socket, program: _Program) -> None:
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    memory = ctypes.create_string_buffer(code, len(code))
    pointer = struct.pack("@HP", len(program), ctypes.addressof(memory))
    target.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, pointer)
