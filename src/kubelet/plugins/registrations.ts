/**
 * Registers plug-ins by their sockets in the kubelet's `plugins_registry` and deregisters them when the socket is
 * removed. Source: pkg/kubelet/pluginmanager.
 */

import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { FileWatch } from '../port.ts';
import type { PluginInfo, RegistrationSockets } from './port.ts';

export interface RegisteredPlugin extends PluginInfo {
  /** Socket of the plug-in's service. */
  readonly socket: string;
}

export interface PluginHandler {
  /** Rejects when the plug-in cannot be used. The registration is then retried. */
  register(plugin: RegisteredPlugin): Promise<void>;
  /** Called when the plug-in's registration socket was removed. */
  deregister(plugin: RegisteredPlugin): Promise<void>;
}

export interface RegistrationOptions {
  readonly directory: string;
  readonly sockets: RegistrationSockets;
  readonly fileWatch: FileWatch;
  /** Handlers by plug-in type. Sockets of other types are ignored. */
  readonly handlers: ReadonlyMap<string, PluginHandler>;
  readonly clock: Clock;
  readonly log: Log;
}

const RESCAN_MS = 10_000;
const FIRST_RETRY_MS = 500;
const MAX_NAME = 253;
const MAX_PATH = 4096;
const MAX_VERSIONS = 64;
/** Maximum number of characters of a response that an error quotes. */
const QUOTED = 64;

interface Known {
  readonly stamp: string;
  /** Plug-in that is registered for the socket, maybe with an earlier stamp. */
  readonly plugin: RegisteredPlugin | undefined;
  readonly failures: number;
  readonly retryAtMs: number;
}

export class PluginRegistrations {
  readonly #options: RegistrationOptions;
  readonly #known = new Map<string, Known>();
  #watch: { close(): void } | undefined;
  #timer: Timer | undefined;
  /** Sockets with a request in progress. An unresponsive socket must not delay the other sockets. */
  readonly #queried = new Set<string>();
  #scans = 0;
  #scanning = false;
  #again = false;
  #stopped = false;

  constructor(options: RegistrationOptions) {
    this.#options = options;
  }

  start(): void {
    this.#watch = this.#options.fileWatch.watch(this.#options.directory, () => this.#scan());
    this.#scan();
  }

  stop(): void {
    this.#stopped = true;
    this.#watch?.close();
    this.#timer?.cancel();
  }

  #scan(): void {
    this.#again = true;
    if (this.#scanning || this.#stopped) return;
    this.#scanning = true;
    void this.#scanUntilQuiet().finally(() => {
      this.#scanning = false;
      if (!this.#stopped) this.#arm();
    });
  }

  #arm(): void {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    // A socket with a request in progress is checked again after its response.
    const due = [...this.#known].filter(([socket]) => !this.#queried.has(socket)).map(([, { retryAtMs }]) => retryAtMs);
    const next = Math.min(nowMs + RESCAN_MS, ...due);
    this.#timer?.cancel();
    this.#timer = clock.setTimer(Math.max(0, next - nowMs), () => this.#scan());
  }

  async #scanUntilQuiet(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      this.#scans += 1;
      const present = await this.#options.sockets.list(this.#options.directory).catch(() => undefined);
      if (present === undefined) continue;
      for (const [socket, known] of this.#known) {
        const stamp = present.get(socket);
        if (stamp === known.stamp) continue;
        // A plug-in that has created its socket again stays registered until its new information is known.
        if (stamp !== undefined) this.#known.set(socket, { ...known, stamp, failures: 0, retryAtMs: 0 });
        else {
          this.#known.delete(socket);
          if (known.plugin !== undefined) await this.#deregister(known.plugin);
        }
      }
      for (const [socket, stamp] of present) if (!this.#queried.has(socket)) this.#requestInfo(socket, stamp);
    }
  }

  #requestInfo(socket: string, stamp: string): void {
    const known = this.#known.get(socket);
    if (known !== undefined && known.retryAtMs > this.#options.clock.monotonicMs()) return;
    const scans = this.#scans;
    this.#queried.add(socket);
    void this.#look(socket, stamp).finally(() => {
      this.#queried.delete(socket);
      if (this.#stopped) return;
      // A newer scan has skipped this socket, so the directory is scanned again.
      if (this.#scans === scans) this.#arm();
      else this.#scan();
    });
  }

  async #look(socket: string, stamp: string): Promise<void> {
    const { clock, sockets, handlers, log } = this.#options;
    const known = this.#known.get(socket);
    let earlier = known?.plugin;
    let plugin: PluginInfo | undefined;
    try {
      plugin = await sockets.info(socket);
      checkInfo(plugin);
      if (earlier !== undefined && (earlier.name !== plugin.name || earlier.type !== plugin.type)) {
        await this.#deregister(earlier);
        earlier = undefined;
      }
      const handler = handlers.get(plugin.type);
      if (handler !== undefined) {
        await handler.register(registered(plugin, socket));
        await sockets.notify(socket, '');
      }
      const done = { stamp, failures: 0, retryAtMs: Number.POSITIVE_INFINITY };
      this.#known.set(socket, { ...done, plugin: registered(plugin, socket) });
    } catch (error) {
      const failures = (known?.failures ?? 0) + 1;
      const delay = Math.min(RESCAN_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
      this.#known.set(socket, { stamp, plugin: earlier, failures, retryAtMs: clock.monotonicMs() + delay });
      log.v(failures === 1 ? 1 : 4, 'plug-in not registered', { socket, error: messageOf(error) });
      if (plugin !== undefined)
        await sockets
          .notify(socket, messageOf(error))
          .catch(ignore('the plug-in has ended; the failure is logged above'));
    }
  }

  async #deregister(plugin: RegisteredPlugin): Promise<void> {
    try {
      await this.#options.handlers.get(plugin.type)?.deregister(plugin);
    } catch (error) {
      this.#options.log.warn('plug-in not deregistered', { plugin: plugin.name, error: messageOf(error) });
    }
  }
}

/** Checks the information of a plug-in. Throws an Error that becomes the status of the registration. */
function checkInfo({ name, endpoint, versions }: PluginInfo): void {
  if (!/^[\x21-\x7e]+$/.test(name) || name.length > MAX_NAME)
    throw new Error(`plug-in name ${quoted(name)} is empty, longer than ${MAX_NAME} characters or not printable ASCII`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a path may not have
  if (endpoint !== '' && (!/^\/[^\0-\x1f\x7f]+$/.test(endpoint) || endpoint.length > MAX_PATH))
    throw new Error(`endpoint ${quoted(endpoint)} is not an absolute path of printable characters`);
  if (versions.length > MAX_VERSIONS || versions.some((version) => version.length > MAX_NAME))
    throw new Error(`more than ${MAX_VERSIONS} supported versions, or one of more than ${MAX_NAME} characters`);
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, QUOTED));

const registered = (plugin: PluginInfo, registration: string): RegisteredPlugin => ({
  ...plugin,
  socket: plugin.endpoint === '' ? registration : plugin.endpoint,
});
