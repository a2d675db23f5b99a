// The page measures itself: paint and navigation timing go to the server after the load event (W3C Paint Timing, Largest
// Contentful Paint, Navigation Timing 2, Resource Timing 2; milliseconds since the navigation began).
(() => {
  const run = new URLSearchParams(location.search).get("run");
  if (run === null) return;
  let largest = null;
  const largestPaint = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) largest = entry.startTime;
  });
  largestPaint.observe({ type: "largest-contentful-paint", buffered: true });
  const firstPaint = new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntriesByName("first-contentful-paint")) {
        observer.disconnect();
        resolve(entry.startTime);
      }
    });
    observer.observe({ type: "paint", buffered: true });
  });
  const loaded = new Promise((resolve) => addEventListener("load", resolve, { once: true }));
  // Two frames after all is there, the paint that shows it has been accounted for.
  const frame = () => new Promise(requestAnimationFrame);
  Promise.all([firstPaint, loaded, document.fonts.ready])
    .then(([first]) => frame().then(frame).then(() => first))
    .then((first) => {
      for (const entry of largestPaint.takeRecords()) largest = entry.startTime;
      const navigation = performance.getEntriesByType("navigation")[0];
      const resources = [navigation, ...performance.getEntriesByType("resource")].map((entry) => ({
        path: new URL(entry.name).pathname,
        status: entry.responseStatus,
        body_bytes: entry.encodedBodySize,
        protocol: entry.nextHopProtocol,
        blocking: entry.renderBlockingStatus === "blocking",
      }));
      fetch("/beacon", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          run,
          first_contentful_paint_ms: first,
          largest_contentful_paint_ms: largest,
          response_start_ms: navigation.responseStart,
          dom_content_loaded_ms: navigation.domContentLoadedEventStart,
          load_ms: navigation.loadEventStart,
          fonts: [...document.fonts].filter((font) => font.status === "loaded").length,
          resources,
        }),
      });
    });
})();
