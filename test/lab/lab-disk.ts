/** A disk of a lab host: ext4 in a file. Cutting its power loses what was not synced, as a machine's page cache does. */
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, run } from '../e2e/harness.ts';
import { succeed } from './rootfs.ts';

const BYTES = 6 * 1024 * 1024 * 1024;
/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: neither data nor journal are written any more. */
const SHUT_DOWN =
  'open(my $d, "<", $ARGV[0]) or die $!; my $f = pack("L", 2); ioctl($d, 0x8004587d, $f) or die "ioctl: $!"';

export class LabDisk {
  readonly mount: string;
  readonly #file: string;
  #device = '';

  constructor(directory: string) {
    this.#file = join(directory, 'disk');
    this.mount = join(directory, 'mounted');
  }

  async make(): Promise<void> {
    const file = await open(this.#file, 'wx');
    await file.truncate(BYTES).finally(() => file.close());
    await succeed('mkfs.ext4', ['-q', '-E', 'lazy_itable_init=1,lazy_journal_init=1', this.#file]);
    await mkdir(this.mount);
    await this.#attach();
  }

  async shutDown(): Promise<void> {
    await succeed('perl', ['-e', SHUT_DOWN, this.mount]);
  }

  /** Nothing may use it. The journal is replayed, as by a boot. */
  async replay(): Promise<void> {
    await this.#detach();
    await this.#attach();
  }

  async remove(): Promise<void> {
    await this.#detach().catch(() => run('umount', ['-l', this.mount]));
  }

  async #attach(): Promise<void> {
    this.#device = (await run('losetup', ['--find', '--show', this.#file])).stdout.trim();
    await succeed('mount', [this.#device, this.mount]);
    // It goes with its last user.
    await succeed('losetup', ['--detach', this.#device]);
  }

  /**
   * Mount namespaces of other programs may hold a copy of the mount, and with it the file system that was shut down: its
   * device is written through once, and not used again.
   */
  async #detach(): Promise<void> {
    await eventually('an unused disk', 10_000, async () =>
      (await run('umount', [this.mount])).code === 0 ? true : undefined,
    );
    await run('blockdev', ['--flushbufs', this.#device]);
  }
}
