/** Simulated pod: echo servers on TCP and UDP, and connections on request. Uses JSON lines on stdin and stdout. */
import { createSocket } from 'node:dgram';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

interface Request {
  readonly id: number;
  readonly op: 'listen' | 'tcp' | 'udp' | 'open' | 'echo';
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
}

const kept: { socket?: Socket } = {};

function echo(socket: Socket, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, timeoutMs, false);
    socket.once('data', () => {
      clearTimeout(timer);
      resolve(true);
    });
    socket.write('x');
  });
}

function open({ host, port, timeoutMs }: Request): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve(undefined);
    }, timeoutMs);
    socket.once('error', () => resolve(undefined));
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}

function ask({ host, port, timeoutMs }: Request): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    const end = (answered: boolean): void => {
      clearTimeout(timer);
      socket.close();
      resolve(answered);
    };
    const timer = setTimeout(end, timeoutMs, false);
    socket.once('message', () => end(true));
    socket.once('error', () => end(false));
    socket.send('x', port, host);
  });
}

async function run(request: Request): Promise<boolean> {
  switch (request.op) {
    case 'listen': {
      for (const port of [8080, 9090]) {
        createServer((socket) => {
          socket.on('error', () => {});
          socket.pipe(socket);
        }).listen(port, '::');
        const udp = createSocket('udp6');
        udp.on('message', (message, peer) => udp.send(message, peer.port, peer.address));
        udp.bind(port, '::');
      }
      return true;
    }
    case 'tcp': {
      const socket = await open(request);
      socket?.destroy();
      return socket !== undefined;
    }
    case 'udp':
      return ask(request);
    case 'open': {
      const socket = await open(request);
      if (socket !== undefined) kept.socket = socket;
      return socket !== undefined;
    }
    case 'echo':
      return kept.socket !== undefined && echo(kept.socket, request.timeoutMs);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  void run(request).then((ok) => process.stdout.write(`${JSON.stringify({ id: request.id, ok })}\n`));
}
process.exit(0);
