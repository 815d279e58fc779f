import { connect, constants } from 'node:http2';
import { Writer } from '../../../wire/protobuf/protobuf.ts';
import { MAX_PROBE_OUTPUT_BYTES } from '../../probes/port.ts';

/** Sends the request of a gRPC probe (`ProbeNetwork.grpcHealth` in kubelet/probes/port.ts). */
export function grpcHealth(ip: string, port: number, service: string, timeoutMs: number): Promise<string | number> {
  return new Promise((resolve, reject) => {
    const authority = `${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
    // A stream pushed by a pod would have no listener, and its reset would end this process.
    const session = connect(`http://${authority}`, { settings: { enablePush: false } });
    session.on('stream', (pushed) => pushed.on('error', () => {}));
    const finish = (): void => {
      clearTimeout(timer);
      session.destroy();
    };
    const fail = (reason: string): void => {
      finish();
      reject(new Error(reason));
    };
    const timer = setTimeout(
      () => fail(`timeout: failed to connect service ${JSON.stringify(authority)} within ${timeoutMs / 1000}s`),
      timeoutMs,
    );
    session.on('error', (error) => fail(`failed to connect to ${authority}: ${error.message}`));
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks: Buffer[] = [];
    let size = 0;
    let status: string | undefined;
    stream.on('response', (headers) => {
      status = textOf(headers['grpc-status']);
    });
    stream.on('trailers', (headers) => {
      status = textOf(headers['grpc-status']);
    });
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_PROBE_OUTPUT_BYTES) chunks.push(chunk);
      else fail(`health rpc answered with more than ${MAX_PROBE_OUTPUT_BYTES} bytes`);
    });
    stream.on('error', (error) => fail(error.message));
    stream.once('end', () => {
      if (status !== undefined && status !== '0') fail(`health rpc failed with status ${status}`);
      else {
        finish();
        const serving = servingStatus(Buffer.concat(chunks));
        resolve(STATUS_NAMES[serving] ?? serving);
      }
    });
    const message = new Writer().bytes(1, Buffer.from(service, 'utf8')).finish();
    const frame = Buffer.alloc(5 + message.length);
    frame.writeUInt32BE(message.length, 1);
    message.copy(frame, 5);
    stream.end(frame);
  });
}

const STATUS_NAMES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/** Field 1 of HealthCheckResponse; an absent field is UNKNOWN. */
function servingStatus(frame: Buffer): number {
  return frame.length >= 7 && frame[5] === 0x08 ? (frame[6] ?? 0) : 0;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0];
}
