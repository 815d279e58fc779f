/** Environment of a container. Source: pkg/kubelet/kubelet_pods.go makeEnvironmentVariables. */
import type { Container, EnvVar, Pod, Service } from '../../../api/generated/core/v1.ts';
import type { Quantity } from '../../../base/quantity.ts';
import { type ConfigReader, decodingOnce } from '../../volumes/config-objects.ts';
import { ExpansionBudget, expand, MAX_CONTAINER_BYTES } from './expansion.ts';
import { fieldValue, resourceValue } from './field-path.ts';

export interface EnvironmentInput {
  readonly pod: Pod;
  readonly container: Container;
  /** All services of the pod's namespace and of `default`. */
  readonly services: readonly Service[];
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
  readonly allocatable: Readonly<Record<string, Quantity>>;
  readonly config: ConfigReader;
}

/** A Map, because variable names such as `__proto__` would change a plain object. */
type Variables = Map<string, string>;

/** Environment variables of a container. Throws an Error whose message is shown with CreateContainerConfigError. */
export async function environmentOf(given: EnvironmentInput): Promise<{ name: string; value: string }[]> {
  const input = { ...given, config: decodingOnce(given.config) };
  const budget = new ExpansionBudget('env, envFrom and service links', MAX_CONTAINER_BYTES);
  const service = serviceEnvironment(input.pod, input.services, budget);
  const result: Variables = new Map();
  for (const source of input.container.envFrom ?? []) {
    const data =
      source.configMapRef !== undefined
        ? await input.config.configMap(input.pod, source.configMapRef.name ?? '', source.configMapRef.optional === true)
        : source.secretRef !== undefined
          ? await input.config.secret(input.pod, source.secretRef.name ?? '', source.secretRef.optional === true)
          : undefined;
    for (const [key, bytes] of data ?? []) {
      const name = (source.prefix ?? '') + key;
      if (name.includes('=') || name === '') continue;
      result.set(budget.text(name), textOf(bytes, budget));
    }
  }
  const lookup = (name: string): string | undefined => result.get(name) ?? service.get(name);
  for (const variable of input.container.env ?? []) {
    const value = await variableValue(input, variable, lookup, budget);
    if (value !== undefined) result.set(budget.text(variable.name), value);
  }
  for (const [name, value] of service) {
    if (!result.has(name)) result.set(name, value);
  }
  return [...result].map(([name, value]) => ({ name, value }));
}

async function variableValue(
  input: EnvironmentInput,
  variable: EnvVar,
  lookup: (name: string) => string | undefined,
  budget: ExpansionBudget,
): Promise<string | undefined> {
  const from = variable.valueFrom;
  if (from === undefined) return expand(variable.value ?? '', lookup, budget);
  if (from.fieldRef !== undefined) return budget.text(fieldValue(input.pod, from.fieldRef.fieldPath, input));
  if (from.resourceFieldRef !== undefined) {
    const named = from.resourceFieldRef.containerName;
    const container =
      named === undefined || named === ''
        ? input.container
        : [...(input.pod.spec?.containers ?? []), ...(input.pod.spec?.initContainers ?? [])].find(
            (each) => each.name === named,
          );
    if (container === undefined) throw new Error(`container ${named} not found`);
    return budget.text(resourceValue(from.resourceFieldRef, container, input.allocatable));
  }
  const { namespace } = input.pod.metadata ?? {};
  if (from.configMapKeyRef !== undefined) {
    const { name = '', key, optional = false } = from.configMapKeyRef;
    const bytes = (await input.config.configMap(input.pod, name, optional))?.get(key);
    if (bytes === undefined) {
      if (optional) return undefined;
      throw new Error(`couldn't find key ${key} in ConfigMap ${namespace}/${name}`);
    }
    return textOf(bytes, budget);
  }
  if (from.secretKeyRef !== undefined) {
    const { name = '', key, optional = false } = from.secretKeyRef;
    const bytes = (await input.config.secret(input.pod, name, optional))?.get(key);
    if (bytes === undefined) {
      if (optional) return undefined;
      throw new Error(`couldn't find key ${key} in Secret ${namespace}/${name}`);
    }
    return textOf(bytes, budget);
  }
  return undefined;
}

function textOf(bytes: Uint8Array, budget: ExpansionBudget): string {
  // Check the size before the bytes are decoded to text.
  if (bytes.length > MAX_CONTAINER_BYTES) budget.take(bytes.length);
  return budget.text(Buffer.from(bytes).toString('utf8'));
}

/** Throws when the variables exceed `budget`. Source: pkg/kubelet/envvars FromServices. */
export function serviceEnvironment(pod: Pod, services: readonly Service[], budget: ExpansionBudget): Variables {
  const variables: Variables = new Map();
  const namespace = pod.metadata?.namespace;
  const links = pod.spec?.enableServiceLinks !== false;
  const visible = services.filter((service) => {
    const ip = service.spec?.clusterIP;
    if (ip === undefined || ip === '' || ip === 'None') return false;
    if (service.metadata?.namespace === 'default' && service.metadata.name === 'kubernetes') return true;
    return links && service.metadata?.namespace === namespace;
  });
  // The pod's own namespace sorts last, so it overrides a service of the same name in `default`.
  visible.sort((a, b) => rank(a, namespace) - rank(b, namespace));
  const set = (name: string, value: string): void => {
    variables.set(budget.text(name), budget.text(value));
  };
  for (const service of visible) addService(set, service);
  return variables;
}

const rank = (service: Service, namespace: string | undefined): number =>
  service.metadata?.namespace === namespace ? 1 : 0;

function addService(set: (name: string, value: string) => void, service: Service): void {
  const prefix = variableName(service.metadata?.name ?? '');
  const ip = service.spec?.clusterIP ?? '';
  const host = ip.includes(':') ? `[${ip}]` : ip;
  const [first] = service.spec?.ports ?? [];
  if (first === undefined) return;
  set(`${prefix}_SERVICE_HOST`, ip);
  set(`${prefix}_SERVICE_PORT`, String(first.port));
  for (const port of service.spec?.ports ?? []) {
    if (port.name !== undefined && port.name !== '') {
      set(`${prefix}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
    }
  }
  for (const [index, port] of (service.spec?.ports ?? []).entries()) {
    const protocol = port.protocol ?? 'TCP';
    const url = `${protocol.toLowerCase()}://${host}:${port.port}`;
    if (index === 0) set(`${prefix}_PORT`, url);
    const each = `${prefix}_PORT_${port.port}_${protocol}`;
    set(each, url);
    set(`${each}_PROTO`, protocol.toLowerCase());
    set(`${each}_PORT`, String(port.port));
    set(`${each}_ADDR`, ip);
  }
}

const variableName = (name: string): string => name.replaceAll('-', '_').toUpperCase();
