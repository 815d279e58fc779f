import { randomBytes } from 'node:crypto';
import { run } from '../e2e/harness.ts';
import { stopWhenInterrupted } from './interrupted.ts';
import { succeed } from './rootfs.ts';

/** A switch that hosts are plugged into, in a network namespace of its own. */
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

  /** Pulls a host's cable, or plugs it in. */
  async cable(host: { readonly name: string }, plugged: boolean): Promise<void> {
    await succeed('ip', ['-n', this.netns, 'link', 'set', portOf(host.name), plugged ? 'up' : 'down']);
  }

  async stop(): Promise<void> {
    await run('ip', ['netns', 'delete', this.netns]);
  }
}

/** The name of a host's end of the cable at the switch: at most 15 characters. */
export const portOf = (host: string): string => `p-${host}`;
