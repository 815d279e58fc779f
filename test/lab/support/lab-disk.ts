/** The disk of a lab host: ext4 in a file. A power cut loses unsynced data, like a machine's page cache. */
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, run } from '../../e2e/harness.ts';
import { succeed } from './rootfs.ts';

const BYTES = 6 * 1024 * 1024 * 1024;
/** Shuts the file system down with EXT4_IOC_SHUTDOWN (NOLOGFLUSH): no data and no journal are written afterwards. */
const SHUT_DOWN =
  'open(my $d, "<", $ARGV[0]) or die $!; my $f = pack("L", 2); ioctl($d, 0x8004587d, $f) or die "ioctl: $!"';

/**
 * An ext4 file system in a file. The test that uses it needs its own mount namespace: a program that creates a mount
 * namespace would otherwise keep a copy of the mount, and the file system would stay in use.
 */
export class LabDisk {
  readonly mount: string;
  readonly #file: string;

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

  /** Mounts the file system again, which replays the journal as at boot. The disk must be unused. */
  async replay(): Promise<void> {
    await this.#detach();
    await this.#attach();
  }

  async remove(): Promise<void> {
    await this.#detach().catch(() => run('umount', ['-l', this.mount]));
  }

  async #attach(): Promise<void> {
    await succeed('mount', ['-o', 'loop', this.#file, this.mount]);
  }

  /** Waits until no mount uses the file system. While it is in use, the kernel may still write its old superblock. */
  async #detach(): Promise<void> {
    await eventually('an unused disk', 20_000, async () => {
      await run('umount', [this.mount]);
      return (await run('losetup', ['--associated', this.#file])).stdout === '' ? true : undefined;
    });
  }
}
