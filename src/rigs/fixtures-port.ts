/** Port for the test rig fixtures of this host. Implemented by `src/rigs/io/fixtures`. */

export type FixtureType = 'serial' | 'gpio' | 'can' | 'video' | 'block' | 'net' | 'relay' | 'device';

export interface Fixture {
  /** Unique on the host and unchanged after re-plugging: vendor and serial number, or the declared name. */
  readonly name: string;
  readonly type: FixtureType;
  /** Device node on the host, and its path in containers. Undefined for a network interface. */
  readonly node?: { readonly hostPath: string; readonly containerPath: string };
  /** Name of the network interface of a `can` or `net` fixture. */
  readonly link?: string;
  /** Attributes from udev: `idVendor`, `idProduct`, `serial`, `product`, `busId`. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** Fixture declared in the bootstrap file. */
export interface DeclaredFixture {
  readonly name: string;
  readonly type: FixtureType;
  /** Device node or a link to one. */
  readonly path?: string;
  /** Attributes that a discovered fixture must have. Used instead of `path`. */
  readonly match?: Readonly<Record<string, string>>;
  /** Path in containers. Default: the path on the host if it is below `/dev`, otherwise `/dev/<name>`. */
  readonly containerPath?: string;
}

export interface FixtureScanner {
  /** Lists the connected fixtures, sorted by name. */
  scan(): Promise<readonly Fixture[]>;
  /** Calls the listener when devices may have changed, so that the caller scans again. */
  watch(listener: () => void): { close(): void };
}
