/** Fields of an extender in a KubeSchedulerConfiguration. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import { boolean, type Cursor, type Field, integer, list, object, string } from '../../wire/strict-yaml.ts';
import type { ExtenderSettings } from '../index.ts';

const DEFAULT_TIMEOUT_MS = 5_000;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Duration in Go's format, such as `500ms` or `1m30s`. */
export const duration: Field<number> = {
  parse: (at) => {
    const text = string().parse(at);
    const parts = [...text.matchAll(/(\d{1,9})(ms|s|m|h)/g)];
    const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ''] ?? 0), 0);
    const isWhole = parts.map(([part]) => part).join('') === text;
    return isWhole && ms > 0 ? ms : at.fail(`"${text}" is not accepted; give a duration such as 5s or 500ms`);
  },
};

const verb = string({ pattern: /^[\w./-]+$/, fix: 'give a path such as filter' });

const shape = object(
  {
    urlPrefix: string({ pattern: /^https?:\/\/[^\s?#]+$/, fix: 'give a URL such as http://127.0.0.1:8888/scheduler' }),
    filterVerb: verb,
    preemptVerb: verb,
    prioritizeVerb: verb,
    bindVerb: verb,
    weight: integer(1, 1_000_000),
    enableHTTPS: boolean(),
    tlsConfig: object({
      insecure: boolean(),
      serverName: string(),
      certFile: string(),
      keyFile: string(),
      caFile: string(),
      certData: string(),
      keyData: string({ pattern: /^[\w+/=\s]+$/, fix: 'give base64', secret: true }),
      caData: string(),
    }),
    httpTimeout: duration,
    nodeCacheCapable: boolean(),
    managedResources: list(object({ name: string(), ignoredByScheduler: boolean() }, ['name'])),
    ignorable: boolean(),
  },
  ['urlPrefix'],
);

type Given = ReturnType<(typeof shape)['parse']>;

export interface ConfiguredExtender extends ExtenderSettings {
  /** Names of resources that the filter NodeResourcesFit ignores, because the extender accounts for them. */
  readonly ignoredByScheduler: readonly string[];
}

export const extender: Field<ConfiguredExtender> = {
  parse: (at) => {
    const given = shape.parse(at);
    if (given.prioritizeVerb !== undefined && given.weight === undefined) {
      at.fail('weight is missing; an extender with prioritizeVerb has a positive weight');
    }
    if (given.enableHTTPS === true && !given.urlPrefix.startsWith('https://')) {
      at.fail(`urlPrefix: "${given.urlPrefix}" is not accepted; give an https:// URL with enableHTTPS`);
    }
    const { filterVerb, prioritizeVerb, preemptVerb, bindVerb } = given;
    return {
      urlPrefix: given.urlPrefix.replace(/\/+$/, ''),
      ...(filterVerb === undefined ? {} : { filterVerb }),
      ...(prioritizeVerb === undefined ? {} : { prioritizeVerb }),
      ...(preemptVerb === undefined ? {} : { preemptVerb }),
      ...(bindVerb === undefined ? {} : { bindVerb }),
      weight: given.weight ?? 1,
      timeoutMs: given.httpTimeout ?? DEFAULT_TIMEOUT_MS,
      nodeCacheCapable: given.nodeCacheCapable ?? false,
      managedResources: (given.managedResources ?? []).map(({ name }) => name),
      ignorable: given.ignorable ?? false,
      tls: given.tlsConfig === undefined ? undefined : tlsOf(at, given.tlsConfig),
      ignoredByScheduler: (given.managedResources ?? [])
        .filter(({ ignoredByScheduler }) => ignoredByScheduler === true)
        .map(({ name }) => name),
    };
  },
};

function tlsOf(at: Cursor, tls: NonNullable<Given['tlsConfig']>): NonNullable<ExtenderSettings['tls']> {
  const pem = (field: string, file: string | undefined, data: string | undefined): string | undefined => {
    if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
    if (file === undefined) return undefined;
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      return at.fail(`tlsConfig.${field}: cannot read ${file}: ${messageOf(error)}`);
    }
  };
  return {
    insecure: tls.insecure ?? false,
    serverName: tls.serverName,
    ca: pem('caFile', tls.caFile, tls.caData),
    cert: pem('certFile', tls.certFile, tls.certData),
    key: pem('keyFile', tls.keyFile, tls.keyData),
  };
}
