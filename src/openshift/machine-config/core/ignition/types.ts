/**
 * Ignition config of a MachineConfig, with the fields that are supported. Sections that hosts cannot change in place
 * are not parsed, but kept for comparison. Source: Ignition configuration specification 3.4.0.
 */

export interface IgnitionConfig {
  readonly ignition: { readonly version: string };
  readonly passwd?: { readonly users?: readonly IgnitionUser[]; readonly groups?: readonly unknown[] };
  readonly storage?: {
    readonly files?: readonly IgnitionFile[];
    readonly directories?: readonly unknown[];
    readonly disks?: readonly unknown[];
    readonly filesystems?: readonly unknown[];
    readonly links?: readonly unknown[];
    readonly luks?: readonly unknown[];
    readonly raid?: readonly unknown[];
  };
  readonly systemd?: { readonly units?: readonly IgnitionUnit[] };
  readonly kernelArguments?: { readonly shouldExist?: readonly string[]; readonly shouldNotExist?: readonly string[] };
}

export interface IgnitionFile {
  readonly path: string;
  readonly overwrite?: boolean;
  readonly user?: IgnitionOwner;
  readonly group?: IgnitionOwner;
  readonly contents?: IgnitionContents;
  /** Permission bits. Default 0644. */
  readonly mode?: number;
  readonly append?: readonly unknown[];
}

export interface IgnitionOwner {
  readonly id?: number;
  readonly name?: string;
}

export interface IgnitionContents {
  /** A `data:` URL (RFC 2397); absent for an empty file. */
  readonly source?: string;
  readonly compression?: string;
}

export interface IgnitionUnit {
  readonly name: string;
  readonly contents?: string;
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly dropins?: readonly IgnitionDropin[];
}

export interface IgnitionDropin {
  readonly name: string;
  readonly contents?: string;
}

export interface IgnitionUser {
  readonly name: string;
  readonly sshAuthorizedKeys?: readonly string[];
}

/** Fields of MachineConfig.spec that are rendered and compared. Source: openshift/api machineconfiguration/v1. */
export interface MachineConfigSpec {
  readonly config?: unknown;
  readonly osImageURL?: string;
  readonly baseOSExtensionsContainerImage?: string;
  readonly kernelArguments?: readonly string[] | null;
  readonly kernelType?: string;
  readonly fips?: boolean;
  readonly extensions?: readonly string[] | null;
}

/** Decompresses gzip data (RFC 1952). Throws if the data is invalid or exceeds `maxBytes` after decompression. */
export type Inflate = (bytes: Uint8Array, maxBytes: number) => Uint8Array;
