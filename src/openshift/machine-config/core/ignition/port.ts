/** Files and links of a host that result from a config. Adapters compare them with the file system and write them. */

export type Entry =
  | {
      readonly kind: 'file';
      readonly bytes: Uint8Array;
      readonly mode: number;
      /** Names or numeric IDs. Default root. */
      readonly user: string | number;
      readonly group: string | number;
      /** Mode of missing parent directories, which then also get the entry's owner; default root and 0755. */
      readonly directoryMode?: number;
      /**
       * The file is edited in place. Other programs also change it, so no original is saved and a difference is no
       * drift.
       */
      readonly shared?: boolean;
    }
  | { readonly kind: 'link'; readonly target: string }
  /** The path must not exist. */
  | { readonly kind: 'absent' };

/** Entries by absolute path below the host's root. */
export type Tree = ReadonlyMap<string, Entry>;

/** Raspberry Pi's cmdline.txt, extlinux.conf, or a file of /etc/default/grub.d. */
export type BootLoader = 'cmdline' | 'extlinux' | 'grub';

export interface UnitFile {
  readonly path: string;
  readonly text: string;
}
