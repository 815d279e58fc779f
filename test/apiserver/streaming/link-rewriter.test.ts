/** Links in pages that are served through the proxy. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { LinkRewriter, proxiedLink } from '../../../src/apiserver/streaming/link-rewriter.ts';

const page = { prefix: '/api/v1/namespaces/n/services/s:80/proxy', hosts: ['10.0.0.9:80', 'master:8443'] };

/** Rewrites `text` in chunks of `size` bytes. */
async function rewritten(text: string | Buffer, size = 65_536): Promise<Buffer> {
  const bytes = Buffer.from(text as string);
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  return buffer(Readable.from(chunks).pipe(new LinkRewriter(page)));
}

describe('links through the proxy', () => {
  it('links through the proxy get its prefix if they begin with / or with the host of the page', () => {
    for (const [link, through] of [
      ['/', `${page.prefix}/`],
      ['/a/b?c=/d#/e', `${page.prefix}/a/b?c=/d#/e`],
      [`${page.prefix}/a`, `${page.prefix}/a`],
      [`${page.prefix}-other`, `${page.prefix}${page.prefix}-other`],
      ['http://10.0.0.9:80/a', `${page.prefix}/a`],
      ['HTTPS://master:8443', `${page.prefix}/`],
      ['//10.0.0.9:80?q', `${page.prefix}/?q`],
      ['//elsewhere/a', '//elsewhere/a'],
      ['https://elsewhere/a', 'https://elsewhere/a'],
      ['a/b', 'a/b'],
      ['#top', '#top'],
      ['', ''],
      ['javascript:/x', 'javascript:/x'],
    ] as const)
      assert.equal(proxiedLink(link, page), through, link);
  });

  const SOURCE = [
    '<!DOCTYPE html><html manifest="/m"><head><title><a href="/t"></title>',
    "<LINK REL=stylesheet HREF='/style.css'><script src = /a.js>if (a</b>c) x='<a href=\"/no\">'</SCRIPT>",
    '<!-- <a href="/no"> --><body background="/bg" data-href="/no">',
    '<a class=x href="/one" title="a > b">ä</a> 1 < 2 <img src=/i.png alt=""/><a href="rel">r</a>',
    '<form action="/f" href="/no"><a href=>empty</a><a/href="/slash"><p href="/no">',
    '<a href="unfinished',
  ].join('\n');
  const P = page.prefix;
  const WANTED = [
    `<!DOCTYPE html><html manifest="${P}/m"><head><title><a href="/t"></title>`,
    `<LINK REL=stylesheet HREF='${P}/style.css'><script src = ${P}/a.js>if (a</b>c) x='<a href="/no">'</SCRIPT>`,
    `<!-- <a href="/no"> --><body background="${P}/bg" data-href="/no">`,
    `<a class=x href="${P}/one" title="a > b">ä</a> 1 < 2 <img src=${P}/i.png alt=""/><a href="rel">r</a>`,
    `<form action="${P}/f" href="/no"><a href=>empty</a><a/href="${P}/slash"><p href="/no">`,
    '<a href="unfinished',
  ].join('\n');

  it('rewrites the links of a proxied page, regardless of how its bytes are split into chunks', async () => {
    for (const size of [1, 2, 3, 5, 7, 16, 1_000])
      assert.equal((await rewritten(SOURCE, size)).toString('utf8'), WANTED, `in pieces of ${size}`);
  });

  it('links through the proxy leave all other bytes unchanged', async () => {
    const bytes = Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 7919) % 256)).filter(
      (byte) => byte !== 0x3c,
    );
    assert.deepEqual(await rewritten(Buffer.from(bytes), 100), Buffer.from(bytes));
    const endless = `<a ${'x'.repeat(200_000)} href="/a">`;
    assert.equal((await rewritten(endless, 1_000)).toString('latin1'), endless);
  });
});
