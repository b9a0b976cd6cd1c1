"""MAVLink 2 packed and read by hand, as its public description says, for peers of tests."""

import struct

import numpy as np

HEARTBEAT, COMMAND, ATTITUDE_TARGET, POSITION_TARGET = 0, 76, 82, 84
EXTRA = {HEARTBEAT: 50, COMMAND: 152, ATTITUDE_TARGET: 49, POSITION_TARGET: 143}
LAYOUTS = {  # fields in the order of the wire, larger types first
    HEARTBEAT: struct.Struct("<I5B"),
    COMMAND: struct.Struct("<7fH3B"),
    ATTITUDE_TARGET: struct.Struct("<I8f3B"),
    POSITION_TARGET: struct.Struct("<I11fH3B"),
}


def checksum(data):
    """CRC-16/MCRF4XX."""
    crc = 0xFFFF
    for byte in data:
        byte ^= crc & 0xFF
        byte = (byte ^ byte << 4) & 0xFF
        crc = (crc >> 8) ^ byte << 8 ^ byte << 3 ^ byte >> 4
    return crc & 0xFFFF


def packed(extra, number, payload, sequence=0):
    payload = payload.rstrip(b"\0") or b"\0"  # MAVLink 2 leaves zeros at the end out
    head = bytes([len(payload), 0, 0, sequence % 256, 1, 1]) + number.to_bytes(3, "little")
    crc = checksum(head + payload + bytes([extra[number]]))
    return b"\xfd" + head + payload + crc.to_bytes(2, "little")


def unpacked(extra, layouts, data):
    """The messages (number, values) of a buffer, and what is left of it."""
    messages = []
    while len(data) >= 12 and len(data) >= data[1] + 12:
        assert data[0] == 0xFD and data[2] == 0, "no MAVLink 2 message without a signature"
        size, number = data[1], int.from_bytes(data[7:10], "little")
        body, crc = data[1 : 10 + size], int.from_bytes(data[10 + size : 12 + size], "little")
        assert crc == checksum(body + bytes([extra[number]])), number
        layout = layouts[number]
        messages.append((number, layout.unpack(data[10 : 10 + size].ljust(layout.size, b"\0"))))
        data = data[12 + size :]
    return messages, data


def check_position_target(values):
    """The target of a waypoint 1, 2, 3 m east, north and up, at 0.1, 0.2, 0.3 m/s, with a nose
    that points 30 degrees left of east.
    """
    np.testing.assert_allclose(values[1:4], [2.0, 1.0, -3.0])
    np.testing.assert_allclose(values[4:7], [0.2, 0.1, -0.3], rtol=1e-6)
    np.testing.assert_allclose(values[10], np.radians(60.0), rtol=1e-6)
    # ignored: bits 6 to 8 of accelerations, 11 of the yaw rate; frame 1 is local north-east-down
    assert values[12] == 64 + 128 + 256 + 2048 and values[13:] == (1, 1, 1)
