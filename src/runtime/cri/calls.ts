import { pathToFileURL } from 'node:url';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { Channel } from '../../wire/grpc/channel.ts';
import { RpcError } from '../../wire/grpc/messages.ts';
import { RpcCode } from '../../wire/grpc/port.ts';
import { RuntimeError, type RuntimeErrorCode } from '../port.ts';
import { type Draft, decode, encode, type Message, type MessageType } from './codec.ts';

/** Upstream's runtimeRequestTimeout. Calls that wait for a grace period add that period. */
export const TIMEOUT_MS = 120_000;
/** The kubelet's limit for image lists. */
const MAX_MESSAGE_BYTES = 16 << 20;
export interface CallOptions {
  /** `unix:///PATH`, or only the path. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Maps gRPC status codes to error codes of the runtime port. */
type Codes = Partial<Record<RpcCode, RuntimeErrorCode>>;

export class CriCalls {
  readonly #channel: Channel;

  constructor({ endpoint, clock, log }: CallOptions) {
    const path = endpoint.replace(/^unix:\/\//, '');
    const endpoints = [`unix://${pathToFileURL(path).pathname}`];
    this.#channel = new Channel({ endpoints, maxMessageBytes: MAX_MESSAGE_BYTES, clock, log });
  }

  close(): void {
    this.#channel.close();
  }

  /** Throws RuntimeError with the runtime's message. */
  async call<Q extends MessageType, A extends MessageType>(
    method: string,
    request: readonly [Q, Draft<Q>],
    answer: A,
    {
      timeoutMs = TIMEOUT_MS,
      otherwise = 'internal' as RuntimeErrorCode,
      codes = {} as Codes,
      signal = undefined as AbortSignal | undefined,
    } = {},
  ): Promise<Message<A>> {
    try {
      const bytes = await this.#channel.unary(`/runtime.v1.${method}`, encode(...request), timeoutMs, { signal });
      return decode(answer, bytes);
    } catch (error) {
      const code = error instanceof RpcError ? (error.code as RpcCode) : RpcCode.unknown;
      const message = messageOf(error).replace(/^store (is unavailable|did not answer in time)/, 'runtime $1');
      throw new RuntimeError(codes[code] ?? (code === RpcCode.notFound ? 'not-found' : otherwise), message, {
        cause: error,
      });
    }
  }
}
