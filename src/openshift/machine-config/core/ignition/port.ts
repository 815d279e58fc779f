/**
 * Files and links of a host that result from a config. Adapters compare this tree with the file system and write it.
 */

export type Entry =
  | {
      readonly kind: 'file';
      readonly bytes: Uint8Array;
      readonly mode: number;
      /** Name or numeric ID of the owner. The default of `user` and `group` is root. */
      readonly user: string | number;
      readonly group: string | number;
      /**
       * Mode of parent directories that are missing. If set, they get the owner of the file; otherwise root and mode
       * 0755.
       */
      readonly directoryMode?: number;
      /**
       * Whether other programs also change the file. A config then edits the file in place: no original is saved, and a
       * difference does not count as drift.
       */
      readonly shared?: boolean;
    }
  | { readonly kind: 'link'; readonly target: string }
  /** The path must not exist. */
  | { readonly kind: 'absent' };

/** Entries by absolute path below the host's root. */
export type Tree = ReadonlyMap<string, Entry>;

/** Kinds of boot loader files: cmdline.txt of Raspberry Pis, extlinux.conf, or a file in /etc/default/grub.d. */
export type BootLoader = 'cmdline' | 'extlinux' | 'grub';

export interface UnitFile {
  readonly path: string;
  readonly text: string;
}
