import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiUsageProblem, ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import { eventTime, inFlight, tlsLimits, watchTime } from '../../../src/host/apiserver/config.ts';

const read = (...argv: string[]) => {
  const values = new ApiValues((path) => path);
  readApiArguments(argv, values);
  return inFlight(values);
};

describe('limits of requests', () => {
  it("limits of requests default to upstream's, and priority and fairness is on unless disabled", () => {
    assert.deepEqual(read(), { maxInFlight: { reading: 400, mutating: 200 }, priorityAndFairness: true });
    assert.deepEqual(
      read('--max-requests-inflight=0', '--max-mutating-requests-inflight=7', '--enable-priority-and-fairness=false'),
      { maxInFlight: { reading: 0, mutating: 7 }, priorityAndFairness: false },
    );
  });

  it('rejects limits of concurrent requests that are negative or add up to zero', () => {
    const none = ['--max-requests-inflight=0', '--max-mutating-requests-inflight=0'];
    assert.throws(() => read(...none), ApiUsageProblem);
    assert.throws(() => read(...none), /max-requests-inflight.*their sum must be positive/);
    assert.equal(read(...none, '--enable-priority-and-fairness=false').priorityAndFairness, false);
    assert.throws(
      () => read('--max-mutating-requests-inflight=-1'),
      /max-mutating-requests-inflight: must not be negative/,
    );
  });
});

it('sets the duration of watches from --min-request-timeout', () => {
  const time = (...argv: string[]) => {
    const values = new ApiValues((path) => path);
    readApiArguments(argv, values);
    return watchTime(values);
  };
  assert.deepEqual([time(), time('--min-request-timeout=7')], [{ minWatchSeconds: 1800 }, { minWatchSeconds: 7 }]);
  assert.deepEqual(time('--min-request-timeout=0'), {});
  assert.throws(() => time('--min-request-timeout=-1'), /--min-request-timeout: must not be negative/);
});

it('sets the lifetime of events from --event-ttl', () => {
  const time = (...argv: string[]) => {
    const values = new ApiValues((path) => path);
    readApiArguments(argv, values);
    return eventTime(values);
  };
  assert.deepEqual(
    [time(), time('--event-ttl=90m'), time('--event-ttl=1500ms')],
    [{}, { eventTtlSeconds: 5400 }, { eventTtlSeconds: 2 }],
  );
  assert.throws(() => time('--event-ttl=0s'), /--event-ttl: must be positive/);
});

describe('TLS limits', () => {
  const limits = (...argv: string[]) => {
    const values = new ApiValues((path) => path);
    readApiArguments(argv, values);
    const warnings: string[] = [];
    return { ...tlsLimits(values, warnings).tls, warnings };
  };

  it('uses the TLS version and cipher suites of the flags', () => {
    assert.deepEqual(limits(), { minVersion: 'TLSv1.2', warnings: [] });
    assert.deepEqual(limits('--tls-min-version=VersionTLS13'), { minVersion: 'TLSv1.3', warnings: [] });
    const weak = 'TLS_RSA_WITH_3DES_EDE_CBC_SHA';
    const chosen = limits(`--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,${weak}`);
    assert.match(chosen.ciphers ?? '', /^ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256:/);
    assert.match(chosen.warnings.join(), /tls-cipher-suites: TLS_RSA_WITH_3DES_EDE_CBC_SHA is insecure/);
    assert.throws(() => limits('--tls-cipher-suites=AES'), /tls-cipher-suites: "AES" is not a cipher suite/);
  });
});
