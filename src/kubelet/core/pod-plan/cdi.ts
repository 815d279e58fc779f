/**
 * Applies CDI specifications to the configuration of a container. Source: Container Device Interface specification 1.0.
 */

import type { ContainerConfig, Mount } from '../../../runtime/port.ts';
import { type DeviceEdits, joinEdits } from './devices.ts';

interface CdiEdits {
  readonly env?: readonly string[];
  readonly deviceNodes?: readonly {
    readonly path?: string;
    readonly hostPath?: string;
    readonly permissions?: string;
  }[];
  readonly mounts?: readonly {
    readonly hostPath?: string;
    readonly containerPath?: string;
    readonly options?: readonly string[];
  }[];
  readonly hooks?: readonly unknown[];
}

interface CdiSpec {
  readonly kind?: string;
  readonly devices?: readonly { readonly name?: string; readonly containerEdits?: CdiEdits }[];
  readonly containerEdits?: CdiEdits;
}

/**
 * Edits of the devices with these qualified names. Throws an Error for an unknown name and for an unsupported edit,
 * because the container must not run with incomplete devices.
 */
export function cdiEdits(specs: readonly unknown[], names: readonly string[]): DeviceEdits {
  const all: DeviceEdits[] = [];
  const seen = new Set<CdiSpec>();
  for (const name of names) {
    const [kind, device] = name.split('=');
    const spec = specs.map(asSpec).find((each) => each.kind === kind && deviceOf(each, device) !== undefined);
    if (spec === undefined) throw new Error(`unresolvable CDI devices ${name}; add its specification to /etc/cdi`);
    if (!seen.has(spec)) all.push(editsOf(spec.containerEdits, name));
    seen.add(spec);
    all.push(editsOf(deviceOf(spec, device)?.containerEdits, name));
  }
  return joinEdits(all);
}

const asSpec = (value: unknown): CdiSpec => (typeof value === 'object' && value !== null ? (value as CdiSpec) : {});

const deviceOf = (spec: CdiSpec, name: string | undefined): { readonly containerEdits?: CdiEdits } | undefined =>
  Array.isArray(spec.devices) ? spec.devices.find((each) => each?.name === name) : undefined;

const list = <T>(value: readonly T[] | undefined): readonly T[] => (Array.isArray(value) ? value : []);

const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('/');

function editsOf(edits: CdiEdits | undefined, name: string): DeviceEdits {
  if (list(edits?.hooks).length > 0) throw new Error(`CDI device ${name}: hooks are not supported; remove them`);
  const env = list(edits?.env).map((line) => {
    const equals = String(line).indexOf('=');
    if (equals <= 0) throw new Error(`CDI device ${name}: env ${JSON.stringify(line)} is not NAME=VALUE`);
    return { name: String(line).slice(0, equals), value: String(line).slice(equals + 1) };
  });
  const devices = list(edits?.deviceNodes).map(({ path, hostPath = path, permissions = 'rwm' }) => {
    if (!isPath(path) || !isPath(hostPath)) throw new Error(`CDI device ${name}: a device node's path is not absolute`);
    if (!/^[rwm]{1,3}$/.test(permissions))
      throw new Error(`CDI device ${name}: permissions must consist of r, w and m`);
    return { hostPath, containerPath: path, permissions } satisfies ContainerConfig['devices'][number];
  });
  const mounts = list(edits?.mounts).map(({ hostPath, containerPath, options = [] }): Mount => {
    if (!isPath(hostPath) || !isPath(containerPath))
      throw new Error(`CDI device ${name}: a mount's path is not absolute`);
    return { hostPath, containerPath, readOnly: options.includes('ro'), propagation: 'private' };
  });
  return { env, devices, mounts, annotations: new Map() };
}
