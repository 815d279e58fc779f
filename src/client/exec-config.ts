/** Exec credential plug-ins of kubeconfigs. Source: k8s.io/client-go/tools/clientcmd/validation.go. */
import { CodedError } from '../base/errors.ts';

const API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const INTERACTIVE_MODES = ['Never', 'IfAvailable', 'Always'];

/** A program that prints credentials (`users[].user.exec`). */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly installHint: string;
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always';
  readonly provideClusterInfo: boolean;
  /** Configuration for the plug-in, from the cluster's extension `client.authentication.k8s.io/exec`. */
  readonly clusterConfig?: unknown;
}

/** Validates the `exec` field of a user. Throws CodedError 'kubeconfig' with client-go's message. */
export function execConfigOf(
  value: unknown,
  user: string,
  cluster: Readonly<Record<string, unknown>>,
): ExecConfig | undefined {
  if (value === undefined || value === null) return undefined;
  const fields = objectOf(value, user, 'exec');
  const text = (name: string): string => {
    const field = fields[name] ?? '';
    if (typeof field !== 'string') throw invalid(`exec.${name} of ${user} must be a string`);
    return field;
  };
  const list = (name: string): readonly unknown[] => {
    const field = fields[name] ?? [];
    if (!Array.isArray(field)) throw invalid(`exec.${name} of ${user} must be a list`);
    return field;
  };
  const purpose = `must be specified for ${user} to use exec authentication plugin`;
  const [command, apiVersion] = [text('command'), text('apiVersion')];
  if (command === '') throw invalid(`command ${purpose}`);
  if (apiVersion === '') throw invalid(`apiVersion ${purpose}`);
  const args = list('args').map((each) => {
    if (typeof each !== 'string') throw invalid(`exec.args of ${user} must be a list of strings`);
    return each;
  });
  const env = list('env').map((each) => {
    const { name, value: content = '' } = objectOf(each, user, 'exec.env');
    if (name === undefined || name === '') throw invalid(`env variable name ${purpose}`);
    if (typeof name !== 'string' || typeof content !== 'string')
      throw invalid(`exec.env of ${user} must have a name and a value that are strings`);
    return { name, value: content };
  });
  const mode = text('interactiveMode') || (/\/v1(?:alpha1|beta1)$/.test(apiVersion) ? 'IfAvailable' : '');
  if (mode === '') throw invalid(`interactiveMode ${purpose}`);
  if (!INTERACTIVE_MODES.includes(mode)) throw invalid(`invalid interactiveMode for ${user}: ${JSON.stringify(mode)}`);
  if (!API_VERSIONS.includes(apiVersion))
    throw new CodedError('kubeconfig', `exec plugin: invalid apiVersion ${JSON.stringify(apiVersion)}`);
  const clusterConfig = extensionOf(cluster);
  return {
    apiVersion,
    command,
    args,
    env,
    installHint: text('installHint'),
    interactiveMode: mode as ExecConfig['interactiveMode'],
    provideClusterInfo: fields['provideClusterInfo'] === true,
    ...(clusterConfig === undefined ? {} : { clusterConfig }),
  };
}

function extensionOf({ extensions }: Readonly<Record<string, unknown>>): unknown {
  if (!Array.isArray(extensions)) return undefined;
  const found = extensions.find((each) => each?.name === 'client.authentication.k8s.io/exec');
  return found?.extension ?? undefined;
}

function objectOf(value: unknown, user: string, field: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`${field} of ${user} must be a mapping`);
  return value as Readonly<Record<string, unknown>>;
}

const invalid = (problem: string): CodedError => new CodedError('kubeconfig', problem);
