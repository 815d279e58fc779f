/** Input files of each control-plane component, and whether a change of a file restarts or reloads the component. */

import { basename, dirname, join } from 'node:path';
import { parse, parseDocument } from 'yaml';
import { decodeJson, list, map, object, optional, text as string } from '../../base/decode.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';
import { referredFiles } from '../../openshift/revisions/core/index.ts';
import type { Operand, OperandFiles } from '../../openshift/revisions/index.ts';
import { createOperandFiles, type Effect, type OperandDirectory } from '../../openshift/revisions/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { SHARED_OUTBOUND } from '../config/outbound.ts';
import type { Settings } from '../config/settings.ts';
import { MANIFESTS, withExecutable } from '../control/static-pods.ts';
import { selfCommand } from '../process/assets.ts';
import { CLUSTER_ID_NAME } from '../store/cluster-id.ts';

export type ControlPlaneComponent = keyof typeof MANIFESTS;

export const CONTAINERS: Readonly<Record<Operand, ControlPlaneComponent>> = {
  etcd: 'etcd',
  'kube-apiserver': 'api',
  'kube-controller-manager': 'controllers',
  'kube-scheduler': 'controllers',
};

const CONFIG = 'master/master-config.yaml';
const ENV = 'master/master.env';
/** The API server reads the proxy and the trusted authorities at its start. */
const OUTBOUND = `master/${SHARED_OUTBOUND}`;
const ETCD_CONFIG = 'etcd/etcd.conf.yaml';
/** File that the host process writes. It is not an input, because a running store does not read it. */
const CLUSTER_ID = `etcd/${CLUSTER_ID_NAME}`;
/** Names of the scheduler's configuration in OKD and in the example bootstrap file. */
const SCHEDULER_CONFIGS = ['scheduler.yaml', 'scheduler.json'];
/** Files that components reload while they run. */
export const FOLLOWED = /\.(crt|key|pem|kubeconfig)$/;
const FOLLOWED_FLAGS = ['encryption-provider-config', 'authentication-config', 'authorization-config'];
const LOG_LEVELS: Readonly<Record<string, number>> = { Debug: 4, Trace: 6, TraceAll: 8 };
const CONTROLLERS_SECTIONS = new Set(['servingInfo', 'serviceAccountConfig', 'masterClients', 'controllerConfig']);

/** Overlay from an operator.openshift.io object, as `overlayOf` writes it. */
const OVERLAY = object({
  logLevel: optional(string),
  unsupportedConfigOverrides: optional(object({ apiServerArguments: optional(map(list(string))) })),
});

const OWN_RELEASE = { version: PRODUCT_VERSION, command: selfCommand() };

/** Operands of this host with their input files. */
export function operandFiles(settings: Settings, release = OWN_RELEASE): Map<Operand, OperandFiles> {
  const { paths, schedulerConfigFile } = settings;
  const master = dirname(paths.masterConfig);
  const files = masterFiles(settings.root);
  const schedulerConfig =
    schedulerConfigFile !== undefined && dirname(schedulerConfigFile) === master ? [basename(schedulerConfigFile)] : [];
  const ofScheduler = new Set([basename(files.schedulerKubeconfig), ...SCHEDULER_CONFIGS, ...schedulerConfig]);
  const masterDirectory = (owns: (file: string) => boolean): OperandDirectory => ({
    live: master,
    name: 'master',
    owns,
  });
  const make = (
    operand: Operand,
    directories: readonly OperandDirectory[],
    classify: (files: ReadonlyMap<string, Buffer>) => ReadonlyMap<string, Effect>,
  ): [Operand, OperandFiles] => [
    operand,
    createOperandFiles({
      operand,
      resources: paths.staticPodResources,
      active: join(paths.staticPodResources, CONTAINERS[operand]),
      directories,
      manifest: join(paths.staticPods, MANIFESTS[CONTAINERS[operand]]),
      release: release.version,
      executable: {
        own: (manifest) => Buffer.from(withExecutable(manifest.toString('utf8'), release.command)),
        neutral: (manifest) => Buffer.from(withExecutable(manifest.toString('utf8'), ['hyperedge'])),
      },
      classify,
      overlaid,
      watchPath,
    }),
  ];
  const etcdDirectories: OperandDirectory[] = [
    { live: dirname(paths.etcdConfig), name: 'etcd', owns: () => true },
    masterDirectory((file) => file === 'master.env'),
  ];
  return new Map([
    ...(ownsStore(settings) ? [make('etcd', etcdDirectories, ofEtcd)] : []),
    make('kube-apiserver', [masterDirectory(() => true)], (present) => ofApiServer(present, master)),
    make('kube-controller-manager', [masterDirectory((file) => !ofScheduler.has(file))], (present) =>
      ofControllers(present, master),
    ),
    make('kube-scheduler', [masterDirectory((file) => ofScheduler.has(file))], (present) =>
      namedEffects([...present.keys()]),
    ),
  ]);
}

const effectOf = (name: string): Effect => (FOLLOWED.test(name) ? 'reload' : 'restart');

const namedEffects = (names: readonly string[]): Map<string, Effect> =>
  new Map(names.map((name) => [name, effectOf(name)]));

function ofEtcd(files: ReadonlyMap<string, Buffer>): Map<string, Effect> {
  return namedEffects(
    [...files.keys()].filter(
      (name) => name === ETCD_CONFIG || name === ENV || (/^etcd\/[^/]+$/.test(name) && name !== CLUSTER_ID),
    ),
  );
}

/** Effect of a change of each file that the API server's configuration references, directly or through other files. */
function ofApiServer(files: ReadonlyMap<string, Buffer>, directory: string): Map<string, Effect> {
  const names = new Set([...files.keys()].map((name) => name.slice('master/'.length)));
  const config = parsed(files.get(CONFIG));
  if (config === undefined) return present(new Map([...namedInText(files), [OUTBOUND, 'restart']]), files);
  const { masterClients: _, controllerConfig: __, ...own } = (config ?? {}) as Record<string, unknown>;
  const first = referredFiles(own, directory, names);
  const second = first
    .filter((name) => effectOf(name) === 'restart')
    .flatMap((name) => referredFiles(parsed(files.get(`master/${name}`)), directory, names));
  const effects = namedEffects([
    ...new Set([CONFIG, ENV, OUTBOUND, ...[...first, ...second].map((name) => `master/${name}`)]),
  ]);
  const flags = (own['kubernetesMasterConfig'] as { apiServerArguments?: Record<string, unknown> } | undefined)
    ?.apiServerArguments;
  for (const flag of FOLLOWED_FLAGS)
    for (const name of referredFiles(flags?.[flag], directory, names)) effects.set(`master/${name}`, 'reload');
  return present(effects, files);
}

function ofControllers(files: ReadonlyMap<string, Buffer>, directory: string): Map<string, Effect> {
  const names = new Set([...files.keys()].map((name) => name.slice('master/'.length)));
  const config = parsed(files.get(CONFIG));
  if (config === undefined) return namedInText(files);
  const referred = referredFiles(config, directory, names, CONTROLLERS_SECTIONS);
  return present(namedEffects([CONFIG, ENV, ...referred.map((name) => `master/${name}`)]), files);
}

/** Input files for a configuration that is not valid YAML: all files whose names occur in its text. */
function namedInText(files: ReadonlyMap<string, Buffer>): Map<string, Effect> {
  const text = files.get(CONFIG)?.toString('utf8') ?? '';
  const named = [...files.keys()].filter((name) => text.includes(name.slice('master/'.length)));
  return present(namedEffects([CONFIG, ENV, ...named]), files);
}

const present = (effects: ReadonlyMap<string, Effect>, files: ReadonlyMap<string, Buffer>): Map<string, Effect> =>
  new Map([...effects].filter(([name]) => files.has(name)));

/** The parsed file; undefined for an invalid file. The component itself reports the error. */
function parsed(content: Buffer | undefined): unknown {
  if (content === undefined) return undefined;
  try {
    return parse(content.toString('utf8'), { maxAliasCount: 0 });
  } catch {
    return undefined;
  }
}

/**
 * The text of a component's configuration file with `logLevel` and `unsupportedConfigOverrides` of an
 * operator.openshift.io object.
 */
function overlaid(name: string, text: string, overlay: string): string {
  if (overlay === '' || (name !== ENV && name !== CONFIG)) return text;
  const { logLevel, unsupportedConfigOverrides } = decodeJson(OVERLAY, overlay, 'overlay');
  if (name === ENV) {
    const level = LOG_LEVELS[logLevel ?? ''];
    return level === undefined ? text : `${text.replace(/\n?$/, '\n')}OPTIONS=--loglevel=${level}\n`;
  }
  const flags = unsupportedConfigOverrides?.apiServerArguments;
  if (flags === undefined) return text;
  const document = parseDocument(text);
  if (document.errors.length > 0) return text;
  for (const [flag, values] of Object.entries(flags))
    document.setIn(['kubernetesMasterConfig', 'apiServerArguments', flag], [...values]);
  return document.toString({ lineWidth: 0 });
}
