import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTestOutput } from './go-tests.ts';

test('counts Go tests without their subtests, and lists failures by name', () => {
  const output = [
    '=== RUN   TestOne',
    '--- PASS: TestOne (0.00s)',
    '=== RUN   TestTable',
    '=== RUN   TestTable/a',
    '=== RUN   TestTable/b',
    '--- FAIL: TestTable (0.10s)',
    '    --- PASS: TestTable/a (0.00s)',
    '    --- FAIL: TestTable/b (0.10s)',
    '--- SKIP: TestLater (0.00s)',
    'FAIL',
  ];
  assert.deepEqual(readTestOutput(output.join('\n')), { passed: 2, skipped: 1, failed: ['TestTable/b'] });
});

test('counts the specs of a Ginkgo suite instead of the Go test that runs it', () => {
  const output = [
    '=== RUN   TestWebhook',
    'Running Suite: Webhook Suite - /src',
    '\u001b[38;5;9m\u001b[1mSummarizing 1 Failure:\u001b[0m',
    '  \u001b[38;5;9m[FAIL]\u001b[0m \u001b[0mWebhook \u001b[1m[It] rejects\u001b[0m',
    '\u001b[1mRan 3 of 5 Specs in 1.2 seconds\u001b[0m',
    '\u001b[1mFAIL!\u001b[0m -- \u001b[1m2 Passed\u001b[0m | \u001b[1m1 Failed\u001b[0m | 1 Pending | 1 Skipped',
    '--- FAIL: TestWebhook (1.20s)',
    '=== RUN   TestPlain',
    '--- PASS: TestPlain (0.00s)',
  ];
  assert.deepEqual(readTestOutput(output.join('\n')), { passed: 3, skipped: 2, failed: ['Webhook [It] rejects'] });
});
