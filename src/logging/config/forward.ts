/** Section `logging` of the bootstrap file. */
import { checkedString, integer, object, oneOf, type Parsed, string } from '../../wire/strict-yaml.ts';
import { FORWARD_TYPES, type ForwardSettings } from '../port.ts';

const MIB = 1024 * 1024;
const BUFFER_BYTES = 16 * MIB;
const CONTAINER_BYTES = 256 * 1024;

const URL_FIX =
  'give tcp://HOST:PORT, tls://HOST:PORT or udp://HOST:PORT for syslog, http://HOST:PORT or https://HOST:PORT for otlp and loki, without a user';

const url = () =>
  checkedString(
    (text) =>
      /^(?:tcp|tls|udp|https?):\/\/(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?(?:\/[^\s?#@]*)?$/.test(
        text,
      ) && URL.canParse(text)
        ? undefined
        : URL_FIX,
    'URL of the receiver: tcp, tls or udp for syslog; http or https for otlp and loki',
  );

const absolutePath = () => string({ pattern: /^\//, fix: 'give an absolute path' });

const forwardShape = {
  type: oneOf(...FORWARD_TYPES),
  url: url(),
  caFile: absolutePath(),
  headersFile: absolutePath(),
  bufferMiB: integer(1, 512),
  containerKiBPerSecond: integer(1, 65_536),
} as const;

export const loggingField = () => {
  const forward = object(forwardShape, ['type', 'url']);
  return object({
    forward: {
      ...forward,
      parse: (at: Parameters<typeof forward.parse>[0]) => {
        const value = forward.parse(at);
        const isHttp = /^https?:/.test(value.url);
        if ((value.type === 'syslog') === isHttp)
          throw at.fail(`${value.type} cannot be sent to ${value.url}; ${URL_FIX}`);
        if (!isHttp && new URL(value.url.replace(/^[a-z]+/, 'http')).pathname !== '/')
          throw at.fail(`${value.url} has a path; syslog has none`);
        if (value.type === 'syslog' && value.headersFile !== undefined)
          throw at.fail('headersFile is for otlp and loki; remove it');
        return value;
      },
    },
  });
};

type LoggingFile = Parsed<{ logging: ReturnType<typeof loggingField> }, 'logging'>['logging'];

/** Settings of log forwarding; undefined if logs are not forwarded. */
export function forwardOf(file: LoggingFile | undefined): ForwardSettings | undefined {
  const forward = file?.forward;
  if (forward === undefined) return undefined;
  const { type, caFile, headersFile, bufferMiB, containerKiBPerSecond } = forward;
  return {
    type,
    url: forward.url,
    caFile,
    headersFile,
    bufferBytes: bufferMiB === undefined ? BUFFER_BYTES : bufferMiB * MIB,
    containerBytesPerSecond: containerKiBPerSecond === undefined ? CONTAINER_BYTES : containerKiBPerSecond * 1024,
  };
}

/** Fields that `hyperedge config show` prints. */
export const effectiveLogging = (forward: ForwardSettings | undefined): [string, unknown][] =>
  forward === undefined
    ? []
    : [
        ['logging.forward.type', forward.type],
        ['logging.forward.url', forward.url],
        ['logging.forward.caFile', forward.caFile],
        ['logging.forward.headersFile', forward.headersFile],
        ['logging.forward.bufferMiB', forward.bufferBytes / MIB],
        ['logging.forward.containerKiBPerSecond', forward.containerBytesPerSecond / 1024],
      ];
