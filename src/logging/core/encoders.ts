/**
 * Encodes records in the formats of receivers: syslog (RFC 5424, framed by RFC 6587), and OpenTelemetry logs and Loki's
 * push API in JSON. Source: opentelemetry-proto logs/v1, OTLP/HTTP; grafana.com/docs/loki reference/loki-http-api.
 */
import type { LogRecord } from '../port.ts';

/** Syslog facility local0. */
const FACILITY = 16;
const SEVERITIES = { error: 3, warning: 4, info: 6 } as const;
/** ID of the structured data, with the enterprise number that RFC 5612 reserves for documentation. */
const STRUCTURED_ID = 'hyperedge@32473';
const NIL = '-';

/**
 * Syslog message without framing. Control characters in the text are escaped, because receivers write messages as
 * lines.
 */
export function syslogMessage(record: LogRecord, node: string): string {
  const name = record.component === '' ? record.container : record.component;
  const data = [
    ['namespace', record.namespace],
    ['pod', record.pod],
    ['uid', record.uid],
    ['container', record.container],
    ['component', record.component],
    ['stream', record.stream],
  ]
    .filter(([, value]) => value !== '')
    .map(([key, value]) => ` ${key}="${(value ?? '').replaceAll(/["\\\]]/g, '\\$&').replaceAll(/\p{Cc}/gu, ' ')}"`)
    .join('');
  const head = [
    `<${FACILITY * 8 + SEVERITIES[record.severity]}>1`,
    record.time.replace(/(\.\d{6})\d+/, '$1'),
    printable(node, 255),
    printable(name, 48),
    NIL,
    NIL,
    data === '' ? NIL : `[${STRUCTURED_ID}${data}]`,
  ];
  return `${head.join(' ')} ${record.text.replaceAll(/[\p{Cc}--\t]/gv, escaped)}`;
}

/** Replaces characters that are not allowed in header fields, which are printable ASCII without spaces. */
const printable = (text: string, length: number): string =>
  text.replaceAll(/[^\u0021-\u007E]/g, '_').slice(0, length) || NIL;

const escaped = (character: string): string => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;

const OTLP_SEVERITIES = { error: 17, warning: 13, info: 9 } as const;

/** Body of `POST /v1/logs` in the OTLP format. */
export function otlpBody(records: readonly LogRecord[], node: string, nowMs: number): string {
  const groups = Map.groupBy(records, ({ namespace, pod, uid, container, component }) =>
    JSON.stringify([namespace, pod, uid, container, component]),
  );
  const observed = `${nowMs}000000`;
  return JSON.stringify({
    resourceLogs: [...groups.values()].map((group) => ({
      resource: { attributes: group[0] === undefined ? [] : otlpResource(group[0], node) },
      scopeLogs: [
        {
          scope: { name: 'hyperedge' },
          logRecords: group.map(({ time, text, severity, stream }) => ({
            timeUnixNano: nanoseconds(time),
            observedTimeUnixNano: observed,
            severityNumber: OTLP_SEVERITIES[severity],
            severityText: severity.toUpperCase(),
            body: { stringValue: text },
            attributes: attributes([['log.iostream', stream]]),
          })),
        },
      ],
    })),
  });
}

/** Resource attributes, with the names of OpenTelemetry's semantic conventions. */
const otlpResource = ({ namespace, pod, uid, container, component }: LogRecord, node: string) =>
  attributes([
    ['service.name', component === '' ? container : component],
    ['k8s.node.name', node],
    ['k8s.namespace.name', namespace],
    ['k8s.pod.name', pod],
    ['k8s.pod.uid', uid],
    ['k8s.container.name', container],
    ['hyperedge.component', component],
  ]);

const attributes = (pairs: readonly (readonly [key: string, value: string])[]) =>
  pairs.filter(([, value]) => value !== '').map(([key, value]) => ({ key, value: { stringValue: value } }));

/** Body of `POST /loki/api/v1/push`. */
export function lokiBody(records: readonly LogRecord[], node: string): string {
  const groups = Map.groupBy(records, (record) => JSON.stringify(lokiLabels(record, node)));
  return JSON.stringify({
    streams: [...groups].map(([labels, group]) => ({
      stream: JSON.parse(labels) as unknown,
      values: group.map(({ time, text }) => [nanoseconds(time), text]),
    })),
  });
}

/**
 * Labels of a record. The UID is not a label, because each combination of labels is a stream that uses memory in Loki.
 */
const lokiLabels = ({ namespace, pod, container, component, stream }: LogRecord, node: string) =>
  Object.fromEntries(
    Object.entries({ job: 'hyperedge', node, namespace, pod, container, component, stream }).filter(
      ([, value]) => value !== '',
    ),
  );

/** Converts an RFC 3339 time to nanoseconds since 1970. */
export function nanoseconds(time: string): string {
  const fraction = /\.(\d{1,9})/.exec(time)?.[1] ?? '';
  const seconds = Date.parse(time.replace(/\.\d+/, ''));
  return Number.isNaN(seconds) ? '0' : String(BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0')));
}
