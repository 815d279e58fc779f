import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forwardOf, loggingField } from '../../../src/logging/config/forward.ts';
import { parseConfig } from '../../../src/wire/strict-yaml.ts';

const parse = (text: string) => forwardOf(parseConfig(`forward: ${text}`, 'bootstrap.yaml', loggingField()));

describe('log forwarding section of the bootstrap file', () => {
  it('log forwarding has default values for the buffer size and the rate limit of a container', () => {
    assert.deepEqual(parse('{type: otlp, url: "https://collector.lab:4318"}'), {
      type: 'otlp',
      url: 'https://collector.lab:4318',
      caFile: undefined,
      headersFile: undefined,
      bufferBytes: 16 * 1024 * 1024,
      containerBytesPerSecond: 256 * 1024,
    });
    assert.equal(forwardOf(undefined), undefined);
  });

  for (const url of ['tcp://logs:601', 'udp://10.0.0.1', 'tls://[fd00::1]:6514'])
    it(`accepts ${url} as the receiver of syslog`, () =>
      assert.equal(parse(`{type: syslog, url: "${url}"}`)?.url, url));

  for (const [text, problem] of [
    ['{type: syslog}', /url is missing/],
    ['{type: syslog, url: "https://logs"}', /syslog cannot be sent to https:\/\/logs; give tcp:/],
    ['{type: loki, url: "tcp://logs:1"}', /loki cannot be sent/],
    ['{type: syslog, url: "tcp://logs:1/path"}', /has a path/],
    ['{type: loki, url: "https://user:secret@logs"}', /without a user/],
    ['{type: loki, url: "https://logs:99999"}', /is not accepted/],
    ['{type: kafka, url: "https://logs"}', /must be one of syslog, otlp, loki/],
    ['{type: syslog, url: "tcp://logs:1", headersFile: /etc/h}', /headersFile is for otlp and loki/],
    ['{type: loki, url: "https://logs", headersFile: h}', /absolute path/],
    ['{type: loki, url: "https://logs", bufferMiB: 0}', /from 1 to 512/],
  ] as const)
    it(`rejects the log receiver ${text}`, () =>
      assert.throws(() => parse(text), { code: 'bad-config', message: problem }));
});
