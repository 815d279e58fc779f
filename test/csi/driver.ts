/** A CSI driver similar to the hostpath driver: bind-mounted directories, and files behind loop devices. */
import { execFile } from 'node:child_process';
import { mkdir, rm, truncate, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { silentLog } from '../../src/base/log.ts';
import { createRpcListener } from '../../src/wire/grpc/index.ts';
import { RpcCode, type RpcListener, type RpcService } from '../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../src/wire/protobuf/protobuf.ts';

const execute = promisify(execFile);
const EMPTY = Buffer.alloc(0);

export interface DriverCall {
  readonly method: string;
  readonly volumeId: string;
  /** Merged entries of volume_context, secrets and publish_context. */
  readonly texts: Readonly<Record<string, string>>;
  readonly target: string;
  readonly staging: string;
  readonly block: boolean;
  readonly readOnly: boolean;
  readonly mode: number;
  readonly bytes: number;
}

export interface TestDriverOptions {
  readonly name: string;
  readonly nodeId: string;
  /** Directory of the volumes and the driver's own socket. */
  readonly directory: string;
  /** Directory `<kubelet root>/plugins_registry`. */
  readonly registry: string;
  readonly capabilities?: readonly number[];
}

const STAGE_UNSTAGE = 1;
const STATS = 2;
const EXPAND = 3;

export class TestDriver {
  readonly options: TestDriverOptions;
  readonly calls: DriverCall[] = [];
  /** Registration result that the kubelet reported. */
  registered: boolean | undefined;
  /** Closes all connections during the next call of this method, after its work is done. */
  dieIn: string | undefined;
  /** Methods that fail with the given message. */
  readonly failing = new Map<string, string>();
  /** Loop devices of published block volumes, by target path. */
  readonly #loops = new Map<string, string>();
  #listeners: RpcListener[] = [];
  #death: Promise<void> = Promise.resolve();

  constructor(options: TestDriverOptions) {
    this.options = options;
  }

  get #socket(): string {
    return join(this.options.directory, 'csi.sock');
  }
  get #registration(): string {
    return join(this.options.registry, `${this.options.name}-reg.sock`);
  }

  async start(): Promise<void> {
    await mkdir(this.options.directory, { recursive: true });
    await this.#death;
    for (const path of [this.#socket, this.#registration]) await unlink(path).catch(() => {});
    for (const [path, unary] of [
      [this.#socket, this.#csi],
      [this.#registration, this.#register],
    ] as const) {
      const listener = createRpcListener({ host: '127.0.0.1', port: 0, path, log: silentLog });
      await listener.listen({
        hasService: () => true,
        unary: (method) => (message, call) => {
          unary(method, message).then(
            (answer) => call.reply(answer),
            (error: unknown) => call.fail(RpcCode.internal, String(error)),
          );
        },
        stream: () => undefined,
        http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
      } satisfies RpcService);
      this.#listeners.push(listener);
    }
  }

  /** Simulates a crash: the socket files remain. */
  async die(): Promise<void> {
    const listeners = this.#listeners;
    this.#listeners = [];
    await Promise.all(listeners.map((listener) => listener.close(0)));
  }

  async stop(): Promise<void> {
    await this.die();
    await unlink(this.#registration).catch(() => {});
    for (const target of [...this.#loops.keys()]) await this.#detach(target);
  }

  called(method: string): DriverCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  readonly #register = async (method: string, message: Uint8Array): Promise<Buffer> => {
    if (method.endsWith('/GetInfo')) {
      const { name } = this.options;
      return new Writer(128).string(1, 'CSIPlugin').string(2, name).string(3, this.#socket).string(4, '1.0.0').finish();
    }
    const reader = new Reader(message);
    this.registered = false;
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 1) this.registered = reader.bool();
      else reader.skip();
    }
    return EMPTY;
  };

  readonly #csi = async (path: string, message: Uint8Array): Promise<Buffer> => {
    const method = path.slice(path.lastIndexOf('/') + 1);
    const { nodeId, name, capabilities = [STAGE_UNSTAGE, STATS, EXPAND] } = this.options;
    if (method === 'NodeGetInfo') {
      const segment = new Writer(64).string(1, `topology.${name}/node`).string(2, nodeId).finish();
      const topology = new Writer(96).message(1, segment).finish();
      return new Writer(128).string(1, nodeId).int(2, 7).message(3, topology).finish();
    }
    if (method === 'NodeGetCapabilities') {
      const writer = new Writer(64);
      for (const type of capabilities) {
        writer.message(1, new Writer(8).message(1, new Writer(8).int(1, type).finish()).finish());
      }
      return writer.finish();
    }
    const call = readCall(method, message);
    this.calls.push(call);
    const failure = this.failing.get(method);
    if (failure !== undefined) throw new Error(failure);
    const answer = await this.#work(call);
    if (this.dieIn === method) {
      this.dieIn = undefined;
      this.#death = this.die();
      return new Promise(() => {});
    }
    return answer;
  };

  async #work(call: DriverCall): Promise<Buffer> {
    const data = join(this.options.directory, 'volumes', call.volumeId);
    switch (call.method) {
      case 'NodeStageVolume':
        if (call.block) return EMPTY;
        await mkdir(data, { recursive: true });
        await bind(data, call.staging);
        return EMPTY;
      case 'NodePublishVolume':
        await this.#publish(call, data);
        return EMPTY;
      case 'NodeUnpublishVolume':
        await unmount(call.target);
        await rm(call.target, { recursive: true, force: true });
        await this.#detach(call.target);
        return EMPTY;
      case 'NodeUnstageVolume':
        await unmount(call.staging === '' ? call.target : call.staging);
        return EMPTY;
      case 'NodeExpandVolume':
        return new Writer(16).int(1, call.bytes).finish();
      case 'NodeGetVolumeStats':
        return new Writer(64)
          .message(1, new Writer(32).int(1, 600).int(2, 1000).int(3, 400).int(4, 1).finish())
          .finish();
      default:
        throw new Error(`${call.method} is no call of this driver`);
    }
  }

  /** Detaches the loop device of a published block volume. */
  async #detach(target: string): Promise<void> {
    const device = this.#loops.get(target);
    if (device === undefined) return;
    this.#loops.delete(target);
    await execute('losetup', ['--detach', device]);
  }

  async #publish(call: DriverCall, data: string): Promise<void> {
    if (call.block) {
      await mkdir(dirname(data), { recursive: true });
      await writeFile(data, '', { flag: 'a' });
      await truncate(data, 4 << 20);
      const { stdout } = await execute('losetup', ['--find', '--show', data]);
      this.#loops.set(call.target, stdout.trim());
      await writeFile(call.target, '');
      await execute('mount', ['--bind', stdout.trim(), call.target]);
      return;
    }
    await mkdir(data, { recursive: true });
    await mkdir(call.target, { recursive: true });
    await bind(call.staging === '' ? data : call.staging, call.target);
    if (call.readOnly) await execute('mount', ['-o', 'remount,ro,bind', call.target]);
  }
}

async function bind(source: string, target: string): Promise<void> {
  const mounted = await execute('mountpoint', ['-q', target]).then(
    () => true,
    () => false,
  );
  if (!mounted) await execute('mount', ['--bind', source, target]);
}

async function unmount(target: string): Promise<void> {
  await execute('umount', [target]).catch(() => {});
}

/** Field names by number, which differ between the messages of the node service. Source: csi.proto v1. */
const FIELDS: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  NodeStageVolume: { 2: 'texts', 3: 'staging', 4: 'capability', 5: 'texts', 6: 'texts' },
  NodeUnstageVolume: { 2: 'staging' },
  NodePublishVolume: { 2: 'texts', 3: 'staging', 4: 'target', 5: 'capability', 6: 'readOnly', 7: 'texts', 8: 'texts' },
  NodeUnpublishVolume: { 2: 'target' },
  NodeExpandVolume: { 2: 'target', 3: 'range', 4: 'staging' },
  NodeGetVolumeStats: { 2: 'target', 3: 'staging' },
};

function readCall(method: string, message: Uint8Array): DriverCall {
  const reader = new Reader(message);
  const call = { method, volumeId: '', target: '', staging: '', block: false, readOnly: false, mode: 0, bytes: 0 };
  const texts: Record<string, string> = {};
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    const name = field === 1 ? 'volumeId' : FIELDS[method]?.[field];
    if (name === 'volumeId' || name === 'target' || name === 'staging') call[name] = reader.string();
    else if (name === 'readOnly') call.readOnly = reader.bool();
    else if (name === 'texts') {
      const entry = fieldsOf(reader.bytes());
      texts[entry.get(1)?.toString() ?? ''] = entry.get(2)?.toString() ?? '';
    } else if (name === 'range') {
      const range = reader.message();
      for (let part = range.field(); part !== 0; part = range.field()) {
        if (part === 1) call.bytes = range.int();
        else range.skip();
      }
    } else if (name === 'capability') {
      const capability = fieldsOf(reader.bytes());
      call.block = capability.has(1);
      const mode = new Reader(capability.get(3) ?? EMPTY);
      if (mode.field() === 1) call.mode = mode.int();
    } else reader.skip();
  }
  return { ...call, texts };
}

function fieldsOf(message: Uint8Array): Map<number, Buffer> {
  const reader = new Reader(message);
  const fields = new Map<number, Buffer>();
  for (let field = reader.field(); field !== 0; field = reader.field()) fields.set(field, reader.bytes());
  return fields;
}
