/** How the pages are built: one entry, a chunk a page, everything from our own origin. */
import { defineConfig } from "vitest/config";

const dashboard = process.env.WEIR_DASHBOARD_URL ?? "http://localhost:8081";

export default defineConfig({
  build: {
    target: "es2023",
    // The content security policy allows no inline style, script or data address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    sourcemap: false,
    // The tests on budgets look up which file is what.
    manifest: true,
  },
  server: { proxy: { "/api": { target: dashboard, ws: true } } },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
