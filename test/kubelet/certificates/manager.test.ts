import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { ApiClient } from '../../../src/client/index.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { CertificateManager, CLIENT_SIGNER } from '../../../src/kubelet/index.ts';

const DAY_MS = 86_400_000;

test('checks a certificate as soon as the trusted authorities change', async () => {
  const nowMs = Date.now();
  let isOfSigner = true;
  const requested = Promise.withResolvers<number>();
  const looked = Promise.withResolvers<void>();
  const manager = new CertificateManager({
    signerName: CLIENT_SIGNER,
    files: {
      current: async () => {
        looked.resolve();
        const times = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 365 * DAY_MS };
        return { dns: [], ips: [], isOfSigner, serial: '1', ...times };
      },
      request: async () => {
        requested.resolve(performance.now());
        throw new Error('not signed in this test');
      },
      save: async () => {},
    },
    client: {} as ApiClient,
    names: async () => ({ dns: [], ips: [] }),
    onRenewed: () => {},
    clock,
    nowMs: () => nowMs,
    log: silentLog,
  });
  manager.start();
  try {
    await looked.promise;
    isOfSigner = false;
    const changedMs = performance.now();
    manager.checkNow();
    const requestedMs = await Promise.race([
      requested.promise,
      new Promise<number>((_, reject) => setTimeout(reject, 5_000, new Error('not requested')).unref()),
    ]);
    assert.ok(requestedMs - changedMs < 5_000);
  } finally {
    await manager.stop();
  }
});
