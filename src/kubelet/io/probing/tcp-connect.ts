import { connect as openSocket } from 'node:net';

/** Opens the connection of a TCP probe (`ProbeNetwork.connect` in kubelet/probes/port.ts). */
export function connect(host: string, port: number, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = openSocket({ host, port });
    const fail = (reason: string): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(new Error(`dial tcp ${host}:${port}: ${reason}`));
    };
    const timer = setTimeout(() => fail('i/o timeout'), timeoutMs);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.destroy();
      resolve();
    });
    socket.once('error', (error) => fail(error.message));
  });
}
