/** The files and links that a config makes of a host; adapters compare them with the file system and write them. */

export type Entry =
  | {
      readonly kind: 'file';
      readonly bytes: Uint8Array;
      readonly mode: number;
      /** Names or numbers; root by default. */
      readonly user: string | number;
      readonly group: string | number;
      /** Of directories that are made for it: the entry's owner and this mode, instead of root and 0755. */
      readonly directoryMode?: number;
      /** Edited in place: others change it too, so that no original is kept and no difference is drift. */
      readonly shared?: boolean;
    }
  | { readonly kind: 'link'; readonly target: string }
  /** Must not be there. */
  | { readonly kind: 'absent' };

/** By absolute path below the host's root. */
export type Tree = ReadonlyMap<string, Entry>;

/** Raspberry Pi's cmdline.txt, extlinux.conf, or a file of /etc/default/grub.d. */
export type BootLoader = 'cmdline' | 'extlinux' | 'grub';

export interface UnitFile {
  readonly path: string;
  readonly text: string;
}
