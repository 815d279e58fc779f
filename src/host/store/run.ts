/**
 * The process of the store. It is configured by etcd's flags, environment variables or configuration file, or by this
 * host's etcd.conf.yaml.
 */
import { openSync } from 'node:fs';
import { readFile as readText } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  type EtcdParsed,
  EtcdUsageProblem,
  hasEtcdVariables,
  readArguments,
  readEnvironment,
  readFile,
  settingsOf,
} from '../../store/config/index.ts';
import { resolveRelativeTo } from '../config/master-config.ts';
import { readMasterLogLevel } from '../config/master-env.ts';
import { defaultRouteLink } from '../config/node-addresses.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { hasLeft, runUntilSignal } from '../process/component.ts';
import { diagnosticsBelow, serveDiagnostics } from '../process/diagnostics.ts';
import { keepYoungGenerationSmall, YOUNG_BYTES } from '../process/heap.ts';
import { notifyReady } from '../process/notify.ts';
import { createProcessLog, descriptorSink } from '../process/process.ts';
import { readClusterId } from './cluster-id.ts';

export { EtcdUsageProblem };

export interface EtcdInvocation {
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Flags of `hyperedge etcd`; undefined if the program was called as `etcd`. */
  readonly own:
    | {
        readonly root: string | undefined;
        readonly configFile: string | undefined;
        readonly envFile: string | undefined;
        readonly logLevel: number | undefined;
        readonly snapshots: string | undefined;
        readonly updateRecord: string | undefined;
      }
    | undefined;
}

export type EtcdPlan =
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'run';
      readonly parsed: EtcdParsed;
      readonly fromHost: boolean;
      readonly agentSocket?: string;
      /** Directory for the socket that serves statistics of this process. */
      readonly diagnostics?: string;
      /** Directory of snapshots from which a damaged store is restored. */
      readonly snapshots?: string;
      /** Path of the record of the host's update. */
      readonly updateRecord?: string;
      /** ID of the cluster to which the host's store belongs. */
      readonly formerCluster?: string;
      readonly logLevel: number | undefined;
    };

/** Parses the flags and files. Throws EtcdUsageProblem with the flag, variable or field, and the fix. */
export async function planEtcd(invocation: EtcdInvocation): Promise<EtcdPlan> {
  const plan = await planned(invocation);
  const { snapshots, updateRecord } = invocation.own ?? {};
  if (plan.kind !== 'run') return plan;
  return {
    ...plan,
    ...(snapshots === undefined ? {} : { snapshots }),
    ...(updateRecord === undefined ? {} : { updateRecord }),
  };
}

async function planned({ argv, environment, own }: EtcdInvocation): Promise<EtcdPlan> {
  const given = readArguments(argv);
  if (given === 'help') return { kind: 'help' };
  if (given.get('version')?.text !== undefined && given.get('version')?.text !== 'false') return { kind: 'version' };
  if (own !== undefined && (own.configFile !== undefined || (given.size === 0 && !hasEtcdVariables(environment)))) {
    if (given.size > 0)
      throw new EtcdUsageProblem(2, "--config and etcd's own flags exclude each other; give one of them");
    return planHost(own);
  }
  const configFile = given.get('config-file')?.text ?? environment['ETCD_CONFIG_FILE'] ?? '';
  const defaultHost = await ownAddress();
  // As in etcd, file names in the configuration are relative to the working directory.
  const locate = (path: string): string => path;
  if (configFile === '') {
    const all = readEnvironment(environment, given);
    const { settings, warnings } = settingsOf(all.given, { fromFile: false, locate, defaultHost });
    return {
      kind: 'run',
      parsed: { settings, warnings: [...all.warnings, ...warnings] },
      fromHost: false,
      logLevel: undefined,
    };
  }
  const { settings, warnings } = settingsOf(readFile(configFile, await read(configFile)), {
    fromFile: true,
    locate,
    defaultHost,
  });
  const passedOver = [...given.values()].map(({ label }) => label).filter((label) => label !== '--config-file');
  return {
    kind: 'run',
    parsed: {
      settings,
      warnings: [
        ...(passedOver.length === 0 ? [] : [`${passedOver.join(', ')}: ignored, ${configFile} takes precedence`]),
        ...warnings,
      ],
    },
    fromHost: false,
    logLevel: undefined,
  };
}

/** Reads the configuration that `hyperedge run` has written. File names in it are relative to its directory. */
async function planHost(own: NonNullable<EtcdInvocation['own']>): Promise<EtcdPlan> {
  const root = await canonicalRoot(own.root);
  const paths = pathsBelow(root);
  const file = own.configFile ?? paths.etcdConfig;
  const locate = (path: string): string => resolveRelativeTo(file, path);
  const formerCluster = await readClusterId(file);
  return {
    kind: 'run',
    ...(formerCluster === undefined ? {} : { formerCluster }),
    parsed: settingsOf(readFile(file, await read(file)), { fromFile: true, locate, defaultHost: await ownAddress() }),
    fromHost: true,
    agentSocket: paths.agentSocket,
    diagnostics: diagnosticsBelow(root),
    logLevel: own.logLevel ?? (await readMasterLogLevel(own.envFile ?? paths.masterEnv)),
  };
}

async function read(file: string): Promise<string> {
  try {
    return await readText(file, 'utf8');
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new EtcdUsageProblem(
      1,
      missing
        ? `${file} does not exist; hyperedge run writes it, or name another file`
        : `cannot read ${file}: ${messageOf(error)}`,
    );
  }
}

/** First address of the default route's link. As in etcd, it is the default host of advertised URLs. */
async function ownAddress(): Promise<string | undefined> {
  const link = defaultRouteLink(await readText('/proc/net/route', 'utf8').catch(() => ''));
  return link === undefined ? undefined : networkInterfaces()[link]?.[0]?.address;
}

/**
 * Runs the store until a signal. Resolves with the exit code. Throws CodedErrors with the file, the address or the data
 * directory.
 */
export async function runEtcd({
  parsed,
  fromHost,
  agentSocket,
  diagnostics,
  snapshots,
  updateRecord,
  formerCluster,
  logLevel,
}: EtcdPlan & { kind: 'run' }): Promise<number> {
  const { settings, warnings } = parsed;
  const { least, verbosity, outputs } = settings.log;
  const log: Log = createProcessLog('etcd', logLevel ?? verbosity, descriptorSink(...outputs.map(openOutput)), least);
  for (const warning of warnings) log.warn(warning);
  keepYoungGenerationSmall(YOUNG_BYTES.store);
  const running = runUntilSignal(log, async (onFatal) => {
    if (diagnostics !== undefined) await serveDiagnostics(diagnostics, 'etcd', log);
    const { startEtcd } = await import('./server.ts');
    const component = await startEtcd({
      settings,
      strictKeys: fromHost,
      log,
      agentSocket,
      snapshots,
      updateRecord,
      formerCluster,
      onFatal,
    });
    await notifyReady(process.env, log);
    return component;
  });
  return running.catch((error: unknown) => {
    if (!hasLeft(error)) throw error;
    log.error('store failed', { error: messageOf(error) });
    return 0;
  });
}

export async function etcdVersion(): Promise<string> {
  return (await import('../../store/services/version.ts')).ETCD_VERSION;
}

function openOutput(output: string): number {
  if (output === 'stderr') return 2;
  if (output === 'stdout') return 1;
  try {
    return openSync(output, 'a', 0o600);
  } catch (error) {
    throw new CodedError('unwritable', `--log-outputs: cannot write ${output}: ${messageOf(error)}`, { cause: error });
  }
}
