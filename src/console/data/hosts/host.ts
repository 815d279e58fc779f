/** Machine configuration and hardware of a node's host. */
import type { Node } from '../../../api/generated/core/v1.ts';
import { type AnyObject, listAt, numberAt, textAt } from '../api/resources.ts';
import { bytesText } from '../format.ts';

const PREFIX = 'machineconfiguration.openshift.io/';
/** Prefix of the reason that the machine config daemon reports for files that differ from the configuration. */
const DRIFT = 'unexpected on-disk state';
const PROVIDER_ID = /^baremetalhost:\/\/\/([^/]+)\/([^/]+)\//;

export interface HostConfig {
  readonly level: 'good' | 'warn' | 'bad' | 'muted';
  readonly state: string;
  /** Names of rendered configurations; '' if there is none. */
  readonly current: string;
  readonly desired: string;
  /** Difference between the host and its configuration; '' if there is none. */
  readonly drift: string;
  readonly reason: string;
}

export function hostConfigOf({ metadata }: Node): HostConfig {
  const annotation = (name: string): string => metadata?.annotations?.[PREFIX + name] ?? '';
  const [state, current, desired, reason] = [
    annotation('state'),
    annotation('currentConfig'),
    annotation('desiredConfig'),
    annotation('reason'),
  ];
  const isDrifted = reason.startsWith(DRIFT);
  const drift = isDrifted ? 'files differ' : current === desired ? 'none' : `to ${desired}`;
  let level: HostConfig['level'] = 'warn';
  if (state === '') level = 'muted';
  else if (state === 'Degraded' || state === 'Unreconcilable' || isDrifted) level = 'bad';
  else if (state === 'Done' && current === desired) level = 'good';
  return { level, state: state === '' ? 'not managed' : state, current, desired, drift, reason };
}

/** Namespace and name of a node's BareMetalHost; undefined if the node did not join by an offer. */
export function bareMetalHostOf({ spec }: Node): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace, name] = PROVIDER_ID.exec(spec?.providerID ?? '') ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** Facts of a BareMetalHost's `status.hardware`, as pairs of a name and a text. Empty facts are omitted. */
export function hardwareFacts(host: AnyObject | undefined): readonly (readonly [string, string])[] {
  const hardware = (...path: readonly string[]): string => textAt(host, 'status', 'hardware', ...path);
  const joined = (...texts: readonly string[]): string => texts.filter((each) => each !== '').join(' ');
  const clock = hardware('cpu', 'clockMegahertz');
  const facts: readonly (readonly [string, string])[] = [
    ['System', joined(hardware('systemVendor', 'manufacturer'), hardware('systemVendor', 'productName'))],
    ['Serial number', hardware('systemVendor', 'serialNumber')],
    ['Processor', joined(hardware('cpu', 'model'), clock === '' ? '' : `${clock} MHz`)],
    ['Firmware', joined(hardware('firmware', 'bios', 'vendor'), hardware('firmware', 'bios', 'version'))],
    ...listAt(host, 'status', 'hardware', 'nics').map(
      (each) => [`Interface ${textAt(each, 'name')}`, joined(textAt(each, 'mac'), textAt(each, 'ip'))] as const,
    ),
    ...listAt(host, 'status', 'hardware', 'storage').map((each) => {
      const size = numberAt(each, 0, 'sizeBytes');
      return [`Disk ${textAt(each, 'name')}`, joined(textAt(each, 'model'), size > 0 ? bytesText(size) : '')] as const;
    }),
  ];
  return facts.filter(([, text]) => text !== '');
}
