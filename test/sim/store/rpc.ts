import { RpcCode, wholeMessage } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import type { Member } from './member.ts';
import type { World } from './world.ts';

export type Answer =
  | { readonly kind: 'ok'; readonly body: Buffer }
  /** `sure`: the request certainly has had no effect and never will. */
  | { readonly kind: 'failed'; readonly sure: boolean; readonly code: number; readonly text: string }
  | { readonly kind: 'unknown' };

/** Status codes with which etcd rejects a request before it has any effect. */
const REFUSED = new Set<number>([
  RpcCode.invalidArgument,
  RpcCode.notFound,
  RpcCode.resourceExhausted,
  RpcCode.failedPrecondition,
  RpcCode.outOfRange,
  RpcCode.permissionDenied,
  RpcCode.unauthenticated,
]);

/** Sends one request of a client to a member. `done` is called once: with the response, or when the client gives up. */
export function call(
  world: World,
  member: Member,
  path: string,
  write: (out: Writer) => Writer,
  options: {
    readonly timeoutMs: number;
    readonly relaxed?: boolean;
    /** User of the certificate or, if there is one, of the token. */
    readonly user?: string;
    readonly token?: string;
  },
  done: (answer: Answer) => void,
): void {
  const { timeline, random } = world;
  const { user = 'root', token } = options;
  const requested = write(new Writer(256)).finish();
  const message = world.bug?.request?.(path, requested) ?? requested;
  let over = false;
  const finish = (answer: Answer): void => {
    if (over) return;
    over = true;
    done(answer);
  };
  const later = (answer: Answer): void => timeline.after(random.between(0.1, 3), () => finish(answer));
  let asking: Member['life'];
  const gaveUp: Array<() => void> = [];
  timeline.after(options.timeoutMs, () => {
    if (over) return;
    finish({ kind: 'unknown' });
    timeline.after(random.between(0.1, 3), () =>
      asking?.run(() => {
        for (const tell of gaveUp) tell();
      }),
    );
  });
  timeline.after(random.between(0.1, 3), () => {
    const { life, service } = member;
    if (life === undefined || service === undefined || !life.alive) {
      later({ kind: 'failed', sure: true, code: RpcCode.unavailable, text: 'connection refused' });
      return;
    }
    asking = life;
    life.run(() => {
      const handler = service.unary(path);
      if (handler === undefined) throw new Error(`no handler of ${path}`);
      handler(message, {
        metadata: (name) => {
          if (name === 'token') return token;
          if (name !== 'hyperedge-durability' || options.relaxed !== true) return undefined;
          return message.length % 2 === 0 ? 'relaxed,heartbeat' : 'relaxed';
        },
        peerCommonName: () => world.bug?.user ?? user,
        reply: (body) => later({ kind: 'ok', body: wholeMessage(body) }),
        fail: (code, text) => later({ kind: 'failed', sure: REFUSED.has(code), code, text }),
        whenCancelled: (listener) => gaveUp.push(listener),
      });
    });
  });
}

/**
 * Renews a lease once at one member. `done` is called once with the remaining TTL: 0 if the lease has expired,
 * undefined if unknown.
 */
export function keepAlive(
  world: World,
  member: Member,
  id: bigint,
  timeoutMs: number,
  done: (ttl: number | undefined) => void,
): void {
  const { timeline, random } = world;
  const { life, service } = member;
  let answered = false;
  let over = false;
  const finish = (ttl: number | undefined): void => {
    if (over) return;
    over = true;
    done(ttl);
  };
  timeline.after(timeoutMs, () => finish(undefined));
  const open = service?.stream('/etcdserverpb.Lease/LeaseKeepAlive');
  if (open === undefined || life === undefined) return;
  timeline.after(random.between(0.1, 3), () =>
    life.run(() => {
      const handler = open({
        metadata: () => undefined,
        peerCommonName: () => 'root',
        pause: () => {},
        resume: () => {},
        send: (...parts) => {
          const ttl = ttlOf(Buffer.concat(parts));
          answered = true;
          timeline.after(random.between(0.1, 3), () => finish(ttl));
          return true;
        },
        // The end of the stream arrives after the response.
        end: () => {
          if (!answered) timeline.after(random.between(0.1, 3), () => finish(undefined));
        },
      });
      handler.message(new Writer(16).big(1, id).finish());
      handler.ended();
    }),
  );
}

function ttlOf(body: Buffer): number {
  const reader = new Reader(body);
  let ttl = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) ttl = reader.int();
    else reader.skip();
  }
  return ttl;
}
