import { Writer } from '../../../src/api/etcd/wire.ts';
import { RpcCode, wholeMessage } from '../../../src/components/etcd/port.ts';
import type { Member } from './member.ts';
import type { World } from './world.ts';

export type Answer =
  | { readonly kind: 'ok'; readonly body: Buffer }
  /** `sure`: it has not happened and will not. */
  | { readonly kind: 'failed'; readonly sure: boolean; readonly code: number; readonly text: string }
  | { readonly kind: 'unknown' };

/** etcd's words for what has been refused before anything was done. */
const REFUSED = new Set<number>([
  RpcCode.invalidArgument,
  RpcCode.notFound,
  RpcCode.resourceExhausted,
  RpcCode.failedPrecondition,
  RpcCode.outOfRange,
  RpcCode.permissionDenied,
  RpcCode.unauthenticated,
]);

/** One call of a client at one member. `done` is called once: with the answer, or when the client gives up. */
export function call(
  world: World,
  member: Member,
  path: string,
  write: (out: Writer) => Writer,
  options: {
    readonly timeoutMs: number;
    readonly relaxed?: boolean;
    /** Who asks, by the certificate or, where there is one, by the token. */
    readonly user?: string;
    readonly token?: string;
  },
  done: (answer: Answer) => void,
): void {
  const { timeline, random } = world;
  const { user = 'root', token } = options;
  const asked = write(new Writer(256)).finish();
  const message = world.bug?.request?.(path, asked) ?? asked;
  let over = false;
  const finish = (answer: Answer): void => {
    if (over) return;
    over = true;
    done(answer);
  };
  const later = (answer: Answer): void => timeline.after(random.between(0.1, 3), () => finish(answer));
  timeline.after(options.timeoutMs, () => finish({ kind: 'unknown' }));
  timeline.after(random.between(0.1, 3), () => {
    const { life, service } = member;
    if (life === undefined || service === undefined || !life.alive) {
      later({ kind: 'failed', sure: true, code: RpcCode.unavailable, text: 'connection refused' });
      return;
    }
    life.run(() => {
      const handler = service.unary(path);
      if (handler === undefined) throw new Error(`no handler of ${path}`);
      handler(message, {
        metadata: (name) => {
          if (name === 'token') return token;
          return options.relaxed && name === 'hyperedge-durability' ? 'relaxed' : undefined;
        },
        peerCommonName: () => world.bug?.user ?? user,
        reply: (body) => later({ kind: 'ok', body: wholeMessage(body) }),
        fail: (code, text) => later({ kind: 'failed', sure: REFUSED.has(code), code, text }),
        whenCancelled: () => {},
      });
    });
  });
}
