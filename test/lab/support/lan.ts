import { randomBytes } from 'node:crypto';
import { run } from '../../e2e/harness.ts';
import { stopWhenInterrupted } from './interrupted.ts';
import { succeed } from './rootfs.ts';

/** A switch for lab hosts in a network namespace of its own. */
export class Lan {
  readonly netns: string;
  #hosts = 0;

  private constructor(netns: string) {
    this.netns = netns;
  }

  static async create(): Promise<Lan> {
    const lan = new Lan(`he-lan-${randomBytes(3).toString('hex')}`);
    stopWhenInterrupted(lan);
    await succeed('ip', ['netns', 'add', lan.netns]);
    await succeed('ip', ['-n', lan.netns, 'link', 'add', 'switch', 'type', 'bridge']);
    await succeed('ip', ['-n', lan.netns, 'link', 'set', 'switch', 'up']);
    return lan;
  }

  nextAddress(): string {
    this.#hosts += 1;
    return `192.0.2.${9 + this.#hosts}`;
  }

  /** Plugs or unplugs the cable of a host. */
  async cable(host: { readonly name: string }, plugged: boolean): Promise<void> {
    await succeed('ip', ['-n', this.netns, 'link', 'set', portOf(host.name), plugged ? 'up' : 'down']);
  }

  /** Starts or stops dropping all frames of a host. The host's link stays up. */
  async cutOff(host: { readonly name: string }, cut: boolean): Promise<void> {
    const table = `part-${host.name}`;
    const port = `"${portOf(host.name)}"`;
    const rules = `table bridge ${table} { chain f { type filter hook forward priority 0; iifname ${port} drop; oifname ${port} drop; }; }`;
    const args = cut ? [rules] : ['delete', 'table', 'bridge', table];
    await succeed('nsenter', [`--net=/run/netns/${this.netns}`, 'nft', ...args]);
  }

  async stop(): Promise<void> {
    await run('ip', ['netns', 'delete', this.netns]);
  }
}

/** Name of a host's port on the switch, at most 15 characters. */
export const portOf = (host: string): string => `p-${host}`;
