/** Fixtures of test rigs on this host. Implemented by `src/io/fixtures`. */

export type FixtureType = 'serial' | 'gpio' | 'can' | 'video' | 'block' | 'net' | 'relay' | 'device';

export interface Fixture {
  /** Unique on the host and stable over plugging: vendor and serial number, or as it was declared. */
  readonly name: string;
  readonly type: FixtureType;
  /** The device node; undefined for a network interface. */
  readonly node?: { readonly hostPath: string; readonly containerPath: string };
  /** Name of the network interface of a `can` or `net` fixture. */
  readonly link?: string;
  /** Of udev: `idVendor`, `idProduct`, `serial`, `product`, `busId`. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** A fixture that the bootstrap file names. */
export interface DeclaredFixture {
  readonly name: string;
  readonly type: FixtureType;
  /** A device node or a link to one. */
  readonly path?: string;
  /** Instead of a path: attributes that a found fixture has to have. */
  readonly match?: Readonly<Record<string, string>>;
  /** Where containers see it; by default its own path when that is below `/dev`, else `/dev/<name>`. */
  readonly containerPath?: string;
}

export interface FixtureScanner {
  /** What is plugged in now, sorted by name. */
  scan(): Promise<readonly Fixture[]>;
  /** Calls back when it may be worth to scan again. */
  watch(listener: () => void): { close(): void };
}
