"""A stand-in for Betaflight's simulator target, a program of its own: its UDP packets, its command
line and MSP on TCP, a proportional rate loop, the arming switch. It is written from the public
protocol, shares no code with the package, and has no clock, so that two runs are equal.

A process that SIGSTOP stops is a firmware that answers late; one that is killed has crashed.
"""

import contextlib
import json
import os
import select
import socket
import struct
import sys
import time

FULL_STICK = 6.981317  # rad/s, 400 deg/s
IDLE = 0.055
SETTINGS = "eeprom.bin"


class Firmware:
    def __init__(self):
        self.gains = {"roll": 0.1, "pitch": 0.1, "yaw": 0.3}
        self.sticks, self.armed, self.switch_was_off = [1500, 1500, 1000, 1500], False, False
        self.motors = [0.0] * 4
        if os.path.exists(SETTINGS):
            with open(SETTINGS) as file:
                self.settings = json.load(file)
        else:
            self.settings = {}
        for axis, at_default in (("roll", 45), ("pitch", 45), ("yaw", 45)):
            self.gains[axis] *= float(self.settings.get(f"p_{axis}", at_default)) / at_default

    def receive(self, channels):
        self.sticks, switch = channels[:4], channels[4]
        if switch < 1700:
            self.armed, self.switch_was_off = False, True
        elif self.switch_was_off and (self.armed or self.sticks[2] < 1050):
            self.armed = True

    def turn(self, gyro):
        """Motor commands, front right, rear left, front left, rear right, from rates that are
        forward-left-up.
        """
        if not self.armed:
            return [0.0] * 4
        stick = [(pulse - 1500) / 500 * FULL_STICK for pulse in self.sticks]
        roll = self.gains["roll"] * (stick[0] - gyro[0])
        pitch = self.gains["pitch"] * (stick[1] - gyro[1])
        yaw = self.gains["yaw"] * (-stick[3] - gyro[2])
        thrust = IDLE + (1 - IDLE) * max(0.0, (self.sticks[2] - 1050) / 950)
        parts = (-1, -1, -1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)
        return [min(1.0, max(IDLE, thrust + x * roll + y * pitch + z * yaw)) for x, y, z in parts]

    def enter(self, line):
        """The answer to a line of the command line."""
        if line.startswith("set "):
            name, _, value = line[4:].partition(" = ")
            self.settings[name] = value
        if line == "save":
            with open(SETTINGS, "w") as file:
                json.dump(self.settings, file)
            sys.exit(0)
        return f"{line}\r\n\r\n# "

    def status(self):
        """MSP's extended status, whose flags are the reasons against arming."""
        flags = 0 if self.switch_was_off else 1 << 28
        body = bytes(15) + b"\0" + b"\x1d" + struct.pack("<I", flags)
        head = bytes([len(body), 150])
        check = 0
        for byte in head + body:
            check ^= byte
        return b"$M>" + head + body + bytes([check])


def main():
    firmware, clients, lines = Firmware(), {}, b""
    state, receiver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    state.bind(("0.0.0.0", 9003))
    receiver.bind(("0.0.0.0", 9004))
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    time.sleep(0.05)
    server.bind(("0.0.0.0", 5761))
    server.listen(4)
    while True:
        ready = select.select([receiver, state, server, *clients], [], [])[0]
        if receiver in ready:  # as two threads of the firmware do: the sticks before the state
            while select.select([receiver], [], [], 0)[0]:
                firmware.receive(struct.unpack("<d16H", receiver.recv(100))[1:])
        if state in ready:
            values = struct.unpack("<18d", state.recv(200))
            gyro = values[1], -values[2], -values[3]
            motors = firmware.turn(gyro)
            with contextlib.suppress(ConnectionRefusedError):
                out.sendto(struct.pack("<4f", *motors), ("127.0.0.1", 9002))
        if server in ready:
            client, _ = server.accept()
            clients[client] = b""
        for client in [one for one in ready if one in clients]:
            data = client.recv(4096)
            if not data:
                del clients[client]
                client.close()
            elif data.startswith(b"$M<"):
                client.sendall(firmware.status())
            elif data == b"#":
                client.sendall(b"\r\nEntering CLI Mode\r\n\r\n# ")
            else:
                lines += data
                while b"\n" in lines:
                    line, lines = lines.split(b"\n", 1)
                    client.sendall(firmware.enter(line.decode()).encode())


if __name__ == "__main__":
    main()
