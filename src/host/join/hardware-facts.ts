/** A host's report about its hardware, within the limits of the API server. */

import type { HostInfo } from '../../kubelet/port.ts';
import type { HostHardware } from '../../openshift/machines/kinds/machine-types.ts';
import type { Hardware } from '../hardware/inventory.ts';

const MAX_TEXT = 128;
const MAX_NICS = 32;
const MAX_DISKS = 64;
const MEBIBYTE = 1 << 20;
/** Names of virtual links, of containers and tunnels, which are not hardware. */
const VIRTUAL = /^(veth|lo$|hyper|he-|docker|cni|br-|virbr|vxlan|tun|tap|p-)/;

/**
 * Converts a host's hardware to its report. If `hardware` is undefined because it could not be read, the report
 * contains only facts from the kernel.
 */
export function hardwareFacts(info: HostInfo, hardware: Hardware | undefined): HostHardware {
  const { system, processor, disks = [], networkCards = [] } = hardware ?? {};
  return {
    hostname: text(info.hostname),
    ramMebibytes: Math.floor(info.memoryBytes / MEBIBYTE),
    cpu: {
      arch: info.architecture === 'amd64' ? 'x86_64' : info.architecture === 'arm64' ? 'aarch64' : info.architecture,
      count: info.cpus,
      ...optional('model', processor?.model),
      ...(processor?.maxMegahertz === undefined ? {} : { clockMegahertz: processor.maxMegahertz }),
    },
    ...(system === undefined
      ? {}
      : {
          systemVendor: {
            ...optional('manufacturer', system.manufacturer),
            ...optional('productName', system.model),
            ...optional('serialNumber', system.serial),
          },
        }),
    nics: networkCards
      .filter(({ name }) => !VIRTUAL.test(name))
      .slice(0, MAX_NICS)
      .map(({ name, mac, addresses, megabitsPerSecond }) => ({
        name: text(name),
        ...optional('mac', mac),
        ...optional('ip', addresses[0]?.split('/')[0]),
        ...(megabitsPerSecond === undefined || megabitsPerSecond < 1000
          ? {}
          : { speedGbps: Math.floor(megabitsPerSecond / 1000) }),
      })),
    storage: disks.slice(0, MAX_DISKS).map((disk) => ({
      name: text(disk.device),
      ...optional('type', typeOf(disk.type)),
      ...optional('model', disk.model),
      ...(disk.bytes === undefined ? {} : { sizeBytes: disk.bytes }),
    })),
  };
}

const text = (value: string): string => value.slice(0, MAX_TEXT).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '');

const optional = <K extends string>(name: K, value: string | undefined): { readonly [N in K]?: string } =>
  value === undefined || value === '' ? {} : ({ [name]: text(value) } as { readonly [N in K]?: string });

const typeOf = (type: string | undefined): string | undefined =>
  type === 'HD' ? 'HDD' : type === 'NVMe' ? 'NVME' : type;
