/** Limits for the data of a device plug-in. A list or response outside them is rejected as a whole. */
import { qualifiedNameErrors } from '../../base/names.ts';
import { type AllocateAnswer, type ListedDevice, type Registration, RIG_DRIVER } from './port.ts';

export const PLUGIN_API_VERSION = 'v1beta1';
/** Maximum number of devices per resource. Upstream limits only the message size. */
export const MAX_DEVICES = 4096;
export const MAX_RESOURCES = 128;
const MAX_ID_LENGTH = 253;
const MAX_ITEMS = 256;
const MAX_NUMA_NODE = 1023;
const ENDPOINT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,80}$/;
const ENV_NAME = /^[^=\0]{1,253}$/;
const CDI_NAME =
  /^[a-zA-Z][a-zA-Z0-9_.-]*[a-zA-Z0-9]\/[a-zA-Z]([a-zA-Z0-9_-]*[a-zA-Z0-9])?=[a-zA-Z0-9]([a-zA-Z0-9_.:-]*[a-zA-Z0-9])?$/;

/** Like v1helper.IsExtendedResourceName: has a domain other than Kubernetes' own and is not a quota request. */
export function isExtendedResource(name: string): boolean {
  if (!name.includes('/') || /(?:^|\.)kubernetes\.io\//.test(name) || name.startsWith('requests.')) return false;
  return qualifiedNameErrors(`requests.${name}`).length === 0;
}

export const isCdiName = (name: string): boolean => name.length <= MAX_ID_LENGTH && CDI_NAME.test(name);

/** Checks a registration of a device plug-in. Throws an Error that becomes the response of Register. */
export function checkRegistration({ version, endpoint, resourceName }: Registration): void {
  if (version !== PLUGIN_API_VERSION) {
    throw new Error(
      `requested API version ${JSON.stringify(version.slice(0, 64))} is not supported by kubelet. Supported version is "${PLUGIN_API_VERSION}"`,
    );
  }
  checkResourceName(resourceName);
  if (!ENDPOINT.test(endpoint))
    throw new Error(
      `endpoint ${JSON.stringify(endpoint.slice(0, 128))} is invalid; use the name of a socket beside kubelet.sock`,
    );
}

/** Checks resource, socket and versions of a plug-in. Throws an Error that becomes the status of the registration. */
export function checkPlugin(resource: string, socket: string, versions: readonly string[]): void {
  if (!versions.includes(PLUGIN_API_VERSION)) {
    const offered = JSON.stringify(versions.slice(0, 8));
    throw new Error(`manager version, ${PLUGIN_API_VERSION}, is not among plugin supported versions ${offered}`);
  }
  checkResourceName(resource);
  if (!socket.startsWith('/'))
    throw new Error(`endpoint ${JSON.stringify(socket.slice(0, 64))} is not an absolute path`);
}

function checkResourceName(name: string): void {
  if (!isExtendedResource(name))
    throw new Error(`the ResourceName ${JSON.stringify(name.slice(0, 128))} is invalid; use vendor.example/name`);
  if (name.startsWith(`${RIG_DRIVER}/`))
    throw new Error(`the ResourceName ${JSON.stringify(name.slice(0, 128))} is reserved for the fixtures of this node`);
}

/** Checks the devices that a plug-in lists. Throws an Error that names the first fault. */
export function checkDevices(devices: readonly ListedDevice[]): void {
  if (devices.length > MAX_DEVICES) throw new Error(`${devices.length} devices are listed, more than ${MAX_DEVICES}`);
  const seen = new Set<string>();
  for (const { id, numaNodes } of devices) {
    if (id === '' || id.length > MAX_ID_LENGTH || !/^[\x20-\x7e]+$/.test(id))
      throw new Error(`device ID ${JSON.stringify(id.slice(0, 64))} is empty, too long or not printable ASCII`);
    if (seen.has(id)) throw new Error(`device ${JSON.stringify(id)} is listed twice`);
    seen.add(id);
    if (numaNodes.some((node) => node < 0 || node > MAX_NUMA_NODE))
      throw new Error(`device ${JSON.stringify(id)}: NUMA node ${numaNodes.slice(0, 8).join(', ')} is out of range`);
  }
}

/** Throws an Error that names the first fault of the response for one container. */
export function checkAnswer(answers: readonly AllocateAnswer[]): AllocateAnswer {
  const [answer] = answers;
  if (answer === undefined || answers.length !== 1)
    throw new Error(`${answers.length} container responses; expected 1`);
  const { env, mounts, devices, annotations, cdiDevices } = answer;
  if ([env.size, mounts.length, devices.length, annotations.size, cdiDevices.length].some((n) => n > MAX_ITEMS))
    throw new Error(`more than ${MAX_ITEMS} environment variables, mounts, devices or annotations`);
  for (const name of env.keys())
    if (!ENV_NAME.test(name))
      throw new Error(`environment variable ${JSON.stringify(name.slice(0, 128))} has no valid name`);
  for (const { hostPath, containerPath } of [...mounts, ...devices])
    for (const path of [hostPath, containerPath])
      if (!path.startsWith('/') || path.length > 4096 || path.split('/').includes('..') || path.includes('\0'))
        throw new Error(`path ${JSON.stringify(path.slice(0, 128))} is not absolute`);
  for (const { permissions } of devices)
    if (!/^[rwm]{1,3}$/.test(permissions))
      throw new Error(`device permissions ${JSON.stringify(permissions.slice(0, 16))} must consist of r, w and m`);
  for (const name of cdiDevices)
    if (!isCdiName(name)) throw new Error(`CDI device ${JSON.stringify(name.slice(0, 128))} is not a qualified name`);
  return answer;
}

export function checkPreferred(preferred: readonly string[], available: ReadonlySet<string>, size: number): void {
  const unknown = preferred.find((id) => !available.has(id));
  if (unknown !== undefined)
    throw new Error(`preferred device ${JSON.stringify(unknown.slice(0, 64))} is not available`);
  if (new Set(preferred).size !== size || preferred.length !== size)
    throw new Error(`${preferred.length} devices are preferred, but ${size} were requested`);
}
