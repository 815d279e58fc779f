/** Phases of a rotation that are interrupted at each of their renames and removals. */
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ensureAuthority, loadIfPresent, trustedBundle } from '../../src/pki/authorities.ts';
import { masterFiles, type PairFiles, predecessorOf, successorOf } from '../../src/pki/layout.ts';
import { type RotationPhase, rotateAuthority, rotateServiceAccountKeys } from '../../src/pki/rotation.ts';
import { ensureServiceAccountKeys } from '../../src/pki/service-account-keys.ts';
import { crashAt } from '../support/crash-at.ts';

const PHASES = ['new-ca', 'reissue', 'finish'] as const;
const ROTATION = new URL('../../src/pki/rotation.ts', import.meta.url).href;
const now = Date.now();

describe('interrupted rotation of certificate authorities', { timeout: 240_000 }, () => {
  let scratch = '';
  let directories = 0;
  /** Directories as they were before each phase. */
  const states = new Map<RotationPhase, string>();

  const filesAt = (root: string): PairFiles => masterFiles(root).ca;
  const rotate = (root: string, phase: RotationPhase): Promise<void> =>
    rotateAuthority(filesAt(root), { commonName: 'signer', phase, nowMs: now });
  const copyOf = async (state: string): Promise<string> => {
    const copy = join(scratch, `copy${++directories}`);
    await cp(state, copy, { recursive: true });
    return copy;
  };
  const read = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'rotation-'));
    const root = join(scratch, 'root');
    await mkdir(masterFiles(root).directory, { recursive: true });
    await ensureAuthority(filesAt(root), 'signer', { nowMs: now });
    await ensureServiceAccountKeys(masterFiles(root), { nowMs: now });
    for (const phase of PHASES) {
      states.set(phase, await copyOf(root));
      await rotate(root, phase);
      await rotateServiceAccountKeys(masterFiles(root), phase);
    }
  });
  after(() => rm(scratch, { recursive: true, force: true }));

  for (const [index, phase] of PHASES.entries()) {
    it(`completes rotation phase ${phase} of a CA after a crash at each step, and issued certificates stay trusted`, async () => {
      const state = states.get(phase) ?? '';
      const known = await trustedBundle(filesAt(state));
      const parts = known.split(/(?<=-----END CERTIFICATE-----\n)/);
      for (let step = 0; ; step += 1) {
        const root = await copyOf(state);
        const files = filesAt(root);
        const killed = await crashAt(
          step,
          `const { rotateAuthority } = await import(${JSON.stringify(ROTATION)});
          await rotateAuthority(${JSON.stringify(files)}, { commonName: 'signer', phase: '${phase}', nowMs: ${now} });`,
        );
        // The host starts before the phase is repeated.
        const started = await copyOf(root);
        const signing = await ensureAuthority(filesAt(started), 'signer', { nowMs: now });
        const bundle = await trustedBundle(filesAt(started));
        assert.ok(parts.includes(signing.certPem), `step ${step}: an authority that was trusted before`);
        if (phase !== 'finish')
          for (const part of parts) assert.ok(bundle.includes(part), `step ${step}: all stay trusted`);
        for (const each of [root, started]) {
          await rotate(each, phase);
          await rotate(each, phase);
          const rest = PHASES.slice(index + 1);
          for (const next of rest) await rotate(each, next);
          await assertRotated(each, phase === 'new-ca' ? undefined : await successorIn(state));
        }
        if (!killed) {
          assert.ok(step > 0, 'the phase has steps');
          return;
        }
      }
    });

    it(`completes rotation phase ${phase} of the service account keys after a crash at each step`, async () => {
      const state = states.get(phase) ?? '';
      const before = (await read(masterFiles(state).serviceAccountsPrivateKey)) ?? '';
      for (let step = 0; ; step += 1) {
        const root = await copyOf(state);
        const files = masterFiles(root);
        const killed = await crashAt(
          step,
          `const { rotateServiceAccountKeys } = await import(${JSON.stringify(ROTATION)});
          await rotateServiceAccountKeys(${JSON.stringify(files)}, '${phase}');`,
        );
        for (const next of [phase, ...PHASES.slice(index)]) await rotateServiceAccountKeys(files, next);
        const signing = await read(files.serviceAccountsPrivateKey);
        if (phase !== 'finish') assert.notEqual(signing, before, `step ${step}`);
        assert.equal(await read(files.serviceAccountsNextKey), undefined);
        assert.equal((await read(files.serviceAccountsPublicKey))?.match(/BEGIN/g)?.length, 1);
        if (!killed) return;
      }
    });
  }

  async function successorIn(state: string): Promise<string | undefined> {
    const files = filesAt(state);
    return (await loadIfPresent(successorOf(files)))?.certPem ?? (await loadIfPresent(files))?.certPem;
  }

  /** Checks that only the complete new authority is left. */
  async function assertRotated(root: string, expected: string | undefined): Promise<void> {
    const files = filesAt(root);
    const present = await loadIfPresent(files);
    assert.notEqual(present?.certPem, await read(filesAt(states.get('new-ca') ?? '').cert));
    if (expected !== undefined) assert.equal(present?.certPem, expected);
    assert.equal(await loadIfPresent(successorOf(files)), undefined);
    assert.equal(await loadIfPresent(predecessorOf(files)), undefined);
    const names = (await readdir(masterFiles(root).directory)).filter((name) => /^ca\./.test(name));
    assert.deepEqual(names.toSorted(), ['ca.crt', 'ca.key']);
  }
});

it('adds a service account key on a new line to a file without a final newline', async () => {
  const root = await mkdtemp(join(tmpdir(), 'rotation-'));
  try {
    const files = masterFiles(root);
    await mkdir(files.directory, { recursive: true });
    await ensureServiceAccountKeys(files, { nowMs: now });
    const present = (await readFile(files.serviceAccountsPublicKey, 'utf8')).trimEnd();
    await writeFile(files.serviceAccountsPublicKey, present);
    await rotateServiceAccountKeys(files, 'new-ca');
    const accepted = await readFile(files.serviceAccountsPublicKey, 'utf8');
    assert.equal(accepted.match(/^-----BEGIN PUBLIC KEY-----$/gm)?.length, 2);
    assert.ok(accepted.startsWith(`${present}\n-----BEGIN`));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
