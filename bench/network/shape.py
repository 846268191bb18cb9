"""A router whose links have a latency and a bandwidth: packets that arrive on a TUN device leave it later.

usage: shape.py DEVICE LATENCY RATE

LATENCY in seconds, RATE in bytes per second, both for each pair of addresses and direction. The kernel routes
packets of peers into DEVICE; packets written back continue to their destination. No packet is lost.
"""

import fcntl
import heapq
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

device, latency, rate = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
print("ready", flush=True)

free = {}  # when the link from one address to another has sent what it has
waiting, number = [], 0
while True:
    wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
    if select.select([tun], [], [], wait)[0]:
        while True:
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                break
            if packet[0] >> 4 != 4:
                continue
            link = packet[12:20]  # source and destination
            begins = max(time.monotonic(), free.get(link, 0.0))
            free[link] = begins + len(packet) / rate
            heapq.heappush(waiting, (free[link] + latency, number, packet))
            number += 1
    while waiting and waiting[0][0] <= time.monotonic():
        os.write(tun, heapq.heappop(waiting)[2])
