/** A DRA driver with a registration socket. It prepares the allocated claims. */
import { join } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import { createRpcListener } from '../../src/wire/grpc/index.ts';
import { Reader, Writer } from '../../src/wire/protobuf/protobuf.ts';

const EMPTY = Buffer.alloc(0);

export interface DraDriver {
  /** Names of claims, in the order in which they were prepared and unprepared. */
  readonly calls: readonly string[];
  stop(): Promise<void>;
}

/** `pool` and `device` are assigned to every claim. */
export async function startDraDriver(
  registry: string,
  { name, pool, device }: { readonly name: string; readonly pool: string; readonly device: string },
): Promise<DraDriver> {
  const calls: string[] = [];
  const prepared = new Writer(64).message(1, new Writer(64).string(2, pool).string(3, device).finish()).finish();
  const answer = (verb: string, message: Uint8Array, inner: Buffer): Buffer => {
    const out = new Writer(64);
    const request = new Reader(message);
    for (let field = request.field(); field !== 0; field = request.field()) {
      const claim = new Reader(request.bytes());
      const texts = ['', '', '', ''];
      for (let part = claim.field(); part !== 0; part = claim.field()) texts[part] = claim.string();
      calls.push(`${verb} ${texts[3]}`);
      out.message(
        1,
        new Writer(64)
          .string(1, texts[2] ?? '')
          .message(2, inner)
          .finish(),
      );
    }
    return out.finish();
  };
  const info = new Writer(128).string(1, 'DRAPlugin').string(2, name).string(4, 'v1.DRAPlugin').finish();
  const methods: Readonly<Record<string, (message: Uint8Array) => Buffer>> = {
    GetInfo: () => info,
    NotifyRegistrationStatus: () => EMPTY,
    NodePrepareResources: (message) => answer('prepare', message, prepared),
    NodeUnprepareResources: (message) => answer('unprepare', message, EMPTY),
  };
  const listener = createRpcListener({ host: '', port: 0, path: join(registry, `${name}.sock`), log: silentLog });
  await listener.listen({
    hasService: () => true,
    unary: (path) => {
      const method = methods[path.slice(path.lastIndexOf('/') + 1)];
      return method === undefined ? undefined : (message, call) => call.reply(method(message));
    },
    stream: () => undefined,
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  });
  return { calls, stop: () => listener.close(0) };
}
