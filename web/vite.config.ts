import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// The content security policy of the server (src/api/page/page.cc) allows files of its own and nothing else: so nothing is
// put into the page as data: URLs or inline scripts.
export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  test: { include: ['src/**/*.test.ts'], setupFiles: ['tests/globals.ts'], testTimeout: 60_000 },
});
