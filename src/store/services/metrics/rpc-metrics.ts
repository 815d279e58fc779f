/** Counts calls by method and outcome, and the bytes of their messages, under grpc-prometheus' and etcd's names. */

import type { Log } from '../../../base/log.ts';
import { Histogram } from '../../../base/metrics/histogram.ts';
import type { MetricsText, Sample } from '../../../base/metrics/metrics-text.ts';
import type { Clock } from '../../../base/time/clock.ts';
import {
  type CallIdentity,
  messageLength,
  RpcCode,
  type StreamCall,
  type StreamHandler,
  type UnaryCall,
} from '../../../wire/grpc/port.ts';
import type { UnaryHandlers } from '../kv-service.ts';
import type { StreamHandlers } from '../local-client.ts';
import { LimitedWarning } from './limited-warning.ts';

/** grpc-go's names of the codes, by number. */
const CODE_NAMES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
];

interface Method {
  readonly labels: Readonly<Record<string, string>>;
  started: number;
  received: number;
  sent: number;
  readonly handled: Map<number, number>;
  /** Durations of calls in seconds. Undefined when disabled. */
  readonly handling: Histogram | undefined;
}

/** Buckets of grpc-prometheus. */
const HANDLING_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Calls with one request and a stream of responses. */
const SERVER_STREAMS = new Set(['Snapshot', 'Observe']);

export interface RpcMetricsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Duration in milliseconds from which key requests are logged. */
  readonly slowMs: number;
  /** Whether durations of calls are recorded (`--metrics=extensive`). */
  readonly extensive: boolean;
}

export class RpcMetrics {
  readonly #deps: RpcMetricsDeps;
  readonly #methods: Method[] = [];
  readonly #slowRequest: LimitedWarning;
  #receivedBytes = 0;
  #sentBytes = 0;
  /** Number of calls by the API version that the client reports, for each kind of call. */
  readonly #clients = { unary: new Map<string, number>(), stream: new Map<string, number>() };

  constructor(deps: RpcMetricsDeps) {
    this.#deps = deps;
    this.#slowRequest = new LimitedWarning(deps.log, deps.clock, 'request took long');
  }

  /** Wraps the handlers to count their calls. */
  unary(handlers: UnaryHandlers): UnaryHandlers {
    return Object.fromEntries(
      Object.entries(handlers).map(([path, handler]): [string, UnaryHandlers[string]] => {
        const method = this.#method(path, 'unary');
        return [
          path,
          (message, call) => {
            this.#received(method, message.length);
            method.started += 1;
            this.#from(call, 'unary');
            handler(message, this.#counted(method, call));
          },
        ];
      }),
    );
  }

  streams(handlers: StreamHandlers): StreamHandlers {
    return Object.fromEntries(
      Object.entries(handlers).map(([path, open]): [string, StreamHandlers[string]] => {
        const method = this.#method(path, 'stream');
        return [path, (call) => this.#stream(method, call, open)];
      }),
    );
  }

  /** Number of calls of the method. */
  started(service: string, name: string): number {
    const found = this.#methods.find(
      ({ labels }) => labels['grpc_service'] === service && labels['grpc_method'] === name,
    );
    return found?.started ?? 0;
  }

  show(text: MetricsText): void {
    const each = (value: (method: Method) => number): Sample[] =>
      this.#methods.map((method) => ({ labels: method.labels, value: value(method) }));
    text.counter(
      'etcd_network_client_grpc_received_bytes_total',
      'Bytes received from gRPC clients.',
      this.#receivedBytes,
    );
    text.counter('etcd_network_client_grpc_sent_bytes_total', 'Bytes sent to gRPC clients.', this.#sentBytes);
    text.counter(
      'grpc_server_started_total',
      'RPCs started on the server.',
      each((method) => method.started),
    );
    text.counter(
      'grpc_server_msg_received_total',
      'Messages received on the server.',
      each((method) => method.received),
    );
    text.counter(
      'grpc_server_msg_sent_total',
      'Messages sent by the server.',
      each((method) => method.sent),
    );
    text.counter(
      'etcd_server_client_requests_total',
      'Calls by the version of the client.',
      (['stream', 'unary'] as const).flatMap((type) =>
        [...this.#clients[type]].map(([version, value]) => ({
          labels: { client_api_version: version, type },
          value,
        })),
      ),
    );
    const handled = this.#methods.flatMap((method) =>
      [...method.handled].map(([code, value]) => ({
        labels: { grpc_code: CODE_NAMES[code] ?? String(code), ...method.labels },
        value,
      })),
    );
    text.counter('grpc_server_handled_total', 'RPCs completed on the server, successful or not.', handled);
    if (this.#deps.extensive)
      text.histograms(
        'grpc_server_handling_seconds',
        'Duration of calls on the server, until the response.',
        this.#methods.flatMap(({ labels, handling }) => (handling === undefined ? [] : [[labels, handling] as const])),
      );
  }

  #method(path: string, kind: 'stream' | 'unary'): Method {
    const [, service = '', name = ''] = path.split('/');
    const type = kind === 'unary' ? 'unary' : SERVER_STREAMS.has(name) ? 'server_stream' : 'bidi_stream';
    const method: Method = {
      labels: { grpc_method: name, grpc_service: service, grpc_type: type },
      started: 0,
      received: 0,
      sent: 0,
      handled: new Map([[RpcCode.ok, 0]]),
      handling: this.#deps.extensive ? new Histogram(HANDLING_BUCKETS) : undefined,
    };
    this.#methods.push(method);
    return method;
  }

  /** Source: etcd server/etcdserver/api/v3rpc/interceptor.go, newUnaryInterceptor. */
  #from(call: CallIdentity, type: 'unary' | 'stream'): void {
    const counts = this.#clients[type];
    const reported = call.metadata('client-api-version');
    // Clients choose the label, so the number of series is limited.
    const version = reported !== undefined && /^\d{1,2}\.\d{1,2}$/.test(reported) ? reported : 'unknown';
    counts.set(version, (counts.get(version) ?? 0) + 1);
  }

  #received(method: Method, bytes: number): void {
    method.received += 1;
    this.#receivedBytes += bytes;
  }

  #sent(method: Method, bytes: number): void {
    method.sent += 1;
    this.#sentBytes += bytes;
  }

  #handled(method: Method, code: number): void {
    method.handled.set(code, (method.handled.get(code) ?? 0) + 1);
  }

  /** Source: etcd server/etcdserver/api/v3rpc/interceptor.go, logUnaryRequestStats. */
  #took({ labels, handling }: Method, ms: number): void {
    handling?.observe(ms / 1000);
    const { slowMs } = this.#deps;
    if (ms <= slowMs || labels['grpc_service'] !== 'etcdserverpb.KV') return;
    this.#slowRequest.warn(ms, { method: labels['grpc_method'], ms: Math.round(ms), expected: slowMs });
  }

  #counted(method: Method, call: UnaryCall): UnaryCall {
    const { clock } = this.#deps;
    const began = clock.monotonicMs();
    let over = false;
    const end = (code: number): void => {
      if (!over) {
        this.#handled(method, code);
        this.#took(method, clock.monotonicMs() - began);
      }
      over = true;
    };
    return {
      metadata: (name) => call.metadata(name),
      peerCommonName: () => call.peerCommonName(),
      reply: (message) => {
        if (!over) this.#sent(method, messageLength(message));
        end(RpcCode.ok);
        call.reply(message);
      },
      fail: (code, message) => {
        end(code);
        call.fail(code, message);
      },
      whenCancelled: (listener) =>
        call.whenCancelled(() => {
          end(RpcCode.cancelled);
          listener();
        }),
    };
  }

  #stream(method: Method, call: StreamCall, open: (call: StreamCall) => StreamHandler): StreamHandler {
    method.started += 1;
    this.#from(call, 'stream');
    const { clock } = this.#deps;
    const began = clock.monotonicMs();
    let over = false;
    const end = (code: number): void => {
      if (!over) {
        this.#handled(method, code);
        method.handling?.observe((clock.monotonicMs() - began) / 1000);
      }
      over = true;
    };
    const handler = open({
      metadata: (name) => call.metadata(name),
      peerCommonName: () => call.peerCommonName(),
      send: (...parts) => {
        let bytes = 0;
        for (const part of parts) bytes += part.length;
        this.#sent(method, bytes);
        return call.send(...parts);
      },
      pause: () => call.pause(),
      resume: () => call.resume(),
      end: (code, message) => {
        end(code ?? RpcCode.ok);
        call.end(code, message);
      },
    });
    return {
      message: (message) => {
        this.#received(method, message.length);
        handler.message(message);
      },
      ended: () => handler.ended(),
      closed: () => {
        end(RpcCode.cancelled);
        handler.closed();
      },
      drained: () => handler.drained(),
    };
  }
}
